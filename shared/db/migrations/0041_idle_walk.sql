-- Up Migration

-- Walk over the installations of an app that finds those that nobody has saved for long: where it is, and when the next one
-- begins. It takes the place of an index on updated_at, which every save had to write.
CREATE TABLE idle_walk (
  app_id   text PRIMARY KEY REFERENCES app ON DELETE CASCADE,
  after_id bigint NOT NULL DEFAULT 0,
  next_at  timestamptz(3) NOT NULL DEFAULT '-infinity'
);

-- Down Migration

DROP TABLE idle_walk;
