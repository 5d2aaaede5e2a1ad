-- Up Migration

-- The push whose messages this push recalls; null for all other pushes.
ALTER TABLE notification ADD COLUMN recall_of bigint;

-- Down Migration

ALTER TABLE notification DROP COLUMN recall_of;
