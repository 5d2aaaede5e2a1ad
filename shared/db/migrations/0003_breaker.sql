-- Up Migration

-- What an operator forced a breaker to; without a row, nothing. Every dispatcher reads it.
CREATE TABLE breaker (
  app_id      text NOT NULL,
  connector   text NOT NULL,
  profile     text NOT NULL,
  forced      text NOT NULL CHECK (forced IN ('open', 'closed')),
  since       timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, connector, profile),
  FOREIGN KEY (app_id, connector, profile) REFERENCES push_profile (app_id, connector, name) ON DELETE CASCADE
);

-- What each dispatcher sees of a gateway, for the admin API only. One that stopped seeing to its rows is dead.
CREATE TABLE breaker_state (
  app_id      text NOT NULL,
  connector   text NOT NULL,
  profile     text NOT NULL,
  dispatcher  uuid NOT NULL,
  state       text NOT NULL CHECK (state IN ('closed', 'half-open', 'open')),
  since       timestamptz(3) NOT NULL,
  seen_at     timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, connector, profile, dispatcher)
);
CREATE INDEX breaker_state_seen_at ON breaker_state (seen_at);

-- `tries`: attempts that reached the gateway, bounded by a budget; those that did not are not counted.
-- `last_reason`: why the attempt before this batch did not succeed.
ALTER TABLE push_batch ADD COLUMN tries integer NOT NULL DEFAULT 0, ADD COLUMN last_reason text;

-- Down Migration

ALTER TABLE push_batch DROP COLUMN last_reason, DROP COLUMN tries;
DROP TABLE breaker_state, breaker;
