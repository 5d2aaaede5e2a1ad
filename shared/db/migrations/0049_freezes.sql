-- Up Migration

-- Apps whose pushes are held, and the whole service where `app_id` is null. `released_at`: the held jobs are being given back;
-- the row is deleted when that is done.
CREATE TABLE push_freeze (
  app_id text REFERENCES app (app_id) ON DELETE CASCADE,
  reason text NOT NULL,
  actor text NOT NULL,
  since timestamptz NOT NULL DEFAULT now(),
  released_at timestamptz
);
CREATE UNIQUE INDEX push_freeze_scope ON push_freeze (app_id) NULLS NOT DISTINCT;

-- Down Migration

DROP TABLE push_freeze;
