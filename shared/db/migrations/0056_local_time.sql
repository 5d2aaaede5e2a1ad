-- Up Migration

-- Pushes at local time begin zone by zone: `local_at` is the start in work, whose zones have their time behind `local_after`
-- and until it. Both are null for other pushes, and before the first start.
ALTER TABLE notification ADD COLUMN local_after timestamptz(3), ADD COLUMN local_at timestamptz(3);

-- Expiry of the recipients of one start, where it is not that of the push.
ALTER TABLE push_batch ADD COLUMN expires_at timestamptz(3);

-- Down Migration

ALTER TABLE push_batch DROP COLUMN expires_at;
ALTER TABLE notification DROP COLUMN local_at, DROP COLUMN local_after;
