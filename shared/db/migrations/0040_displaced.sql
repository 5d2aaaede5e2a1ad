-- Up Migration

-- Messages of the push that left the inbox of a device for newer ones: a device has 100 pending messages at most.
ALTER TABLE notification ADD COLUMN displaced bigint NOT NULL DEFAULT 0;

-- Down Migration

ALTER TABLE notification DROP COLUMN displaced;
