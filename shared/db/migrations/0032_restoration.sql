-- Up Migration

-- Restores of this database from a backup (operator's command `carillon restore`): what was found open and held.
CREATE TABLE restoration (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Time of the backup: the database knows nothing of what was sent later.
  as_of        timestamptz(3) NOT NULL,
  restored_at  timestamptz(3) NOT NULL DEFAULT now(),
  -- Counts by kind, as the command prints them.
  report       jsonb NOT NULL
);

-- Pushes that a restore paused, until their records are deleted.
CREATE TABLE restored_push (
  app_id         text NOT NULL,
  push_id        bigint NOT NULL,
  restoration_id bigint NOT NULL REFERENCES restoration ON DELETE CASCADE,
  PRIMARY KEY (app_id, push_id),
  FOREIGN KEY (app_id, push_id) REFERENCES notification (app_id, id) ON DELETE CASCADE
);

-- Down Migration

DROP TABLE restored_push, restoration;
