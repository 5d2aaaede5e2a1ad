-- Up Migration

-- A message waits, until the dispatcher has handed it to a supplier (`sent`), kept it because
-- no supplier is configured (`kept`), or given up (`failed`, with a short reason that names no recipient).
ALTER TABLE outbox
  ADD COLUMN state      text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'kept', 'failed')),
  ADD COLUMN attempts   integer NOT NULL DEFAULT 0,
  ADD COLUMN expires_at timestamptz(3) NOT NULL DEFAULT now() + interval '1 day',
  ADD COLUMN settled_at timestamptz(3),
  ADD COLUMN reason     text;
CREATE INDEX outbox_created_at ON outbox (created_at);

-- Down Migration

DROP INDEX outbox_created_at;
ALTER TABLE outbox DROP COLUMN state, DROP COLUMN attempts, DROP COLUMN expires_at, DROP COLUMN settled_at,
  DROP COLUMN reason;
