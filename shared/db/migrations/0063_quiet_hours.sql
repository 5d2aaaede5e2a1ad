-- Up Migration

-- Quiet hours that apply to the recipients of a batch, and their time zone: `22:00-08:00 Europe/Berlin`; null for none. The second
-- column is the end that they waited for.
ALTER TABLE push_batch ADD COLUMN quiet text, ADD COLUMN quiet_until timestamptz;

-- Recipients of a push that waited for the end of their quiet hours; null for none.
ALTER TABLE notification ADD COLUMN quiet_waits bigint;

-- Down Migration

ALTER TABLE notification DROP COLUMN quiet_waits;
ALTER TABLE push_batch DROP COLUMN quiet_until, DROP COLUMN quiet;
