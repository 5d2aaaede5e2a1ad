-- Up Migration

-- The number of a batch's recipients, so that gates and caps need not read all of them; null in batches that a process of
-- the version before wrote.
ALTER TABLE push_batch ADD COLUMN size integer;

-- Recipients are written once and read once or twice: their compression took more processor time than all else of a row.
ALTER TABLE push_batch ALTER COLUMN recipients SET STORAGE EXTERNAL;

-- Down Migration

ALTER TABLE push_batch ALTER COLUMN recipients SET STORAGE EXTENDED;
ALTER TABLE push_batch DROP COLUMN size;
