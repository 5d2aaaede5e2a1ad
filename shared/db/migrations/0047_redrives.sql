-- Up Migration

-- Push that sends to this recipient again, set once; null while none does.
ALTER TABLE push_failure ADD COLUMN redriven_by bigint;

-- Whether an unanswered request may have reached the recipient; null where a process of the version before wrote the row.
ALTER TABLE push_failure ADD COLUMN is_unsure boolean;

-- Push whose recipients this one sends to again, and the recipients of this one that others send to again.
ALTER TABLE notification ADD COLUMN redrive_of bigint;
ALTER TABLE notification ADD COLUMN redriven bigint NOT NULL DEFAULT 0;

-- Failures of finished pushes that have many, so that the bound of an app needs no count of the failures themselves.
CREATE TABLE failure_count (
  app_id  text NOT NULL,
  push_id bigint NOT NULL,
  n       bigint NOT NULL,
  PRIMARY KEY (app_id, push_id)
);

-- Down Migration

DROP TABLE failure_count;
ALTER TABLE notification DROP COLUMN redriven;
ALTER TABLE notification DROP COLUMN redrive_of;
ALTER TABLE push_failure DROP COLUMN is_unsure;
ALTER TABLE push_failure DROP COLUMN redriven_by;
