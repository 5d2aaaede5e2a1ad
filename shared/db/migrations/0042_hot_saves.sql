-- Up Migration

-- A save that changes nothing but updated_at then writes no index (HOT): a tenth of the processor time and of the write-ahead log.
-- The version before looks for idle installations without it: slower, and its next pass tries again.
DROP INDEX CONCURRENTLY IF EXISTS installation_updated_at;

-- Down Migration

CREATE INDEX installation_updated_at ON installation (app_id, updated_at);
