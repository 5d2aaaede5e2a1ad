-- Up Migration

-- Recipients of a batch that are sent to again because the last request to them got no answer, and how many such
-- requests there were to them so far.
ALTER TABLE push_batch ADD COLUMN repeats int NOT NULL DEFAULT 0;
ALTER TABLE push_batch ADD COLUMN unanswered smallint NOT NULL DEFAULT 0;

-- The repeats of all its batches, once the push is closed.
ALTER TABLE notification ADD COLUMN repeats bigint NOT NULL DEFAULT 0;

-- Down Migration

ALTER TABLE notification DROP COLUMN repeats;
ALTER TABLE push_batch DROP COLUMN unanswered;
ALTER TABLE push_batch DROP COLUMN repeats;
