-- Up Migration

-- The last reading of caps, quotas and credentials that end, for the metrics of all processes: one dispatcher at a time
-- reads. `facts` are what a process says about itself for `carillon doctor`.
ALTER TABLE shared_reading ADD COLUMN accounts jsonb, ADD COLUMN accounts_next_at timestamptz;
ALTER TABLE process_seen ADD COLUMN facts jsonb;

-- Down Migration

ALTER TABLE process_seen DROP COLUMN facts;
ALTER TABLE shared_reading DROP COLUMN accounts, DROP COLUMN accounts_next_at;
