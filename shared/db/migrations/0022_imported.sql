-- Up Migration

-- When an import wrote the row. The device could not call before, so it is idle from then at the earliest.
ALTER TABLE installation ADD COLUMN imported_at timestamptz(3);

-- Down Migration

ALTER TABLE installation DROP COLUMN imported_at;
