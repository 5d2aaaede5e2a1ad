-- Up Migration

-- Smallest and largest internal id of the recipients. They are null in batches of older versions. They exclude most
-- batches of a push when one of its recipients is searched for.
ALTER TABLE push_batch ADD COLUMN first_recipient bigint, ADD COLUMN last_recipient bigint;

-- Receipts that apps report have the connector `app`: a received message is `delivered`, an opened message `clicked`.
ALTER TABLE push_receipt ADD COLUMN dismissed bit(512) NOT NULL DEFAULT 0::bit(512);
ALTER TABLE push_receipt_total ADD COLUMN dismissed bigint NOT NULL DEFAULT 0;

-- Down Migration

ALTER TABLE push_receipt_total DROP COLUMN dismissed;
ALTER TABLE push_receipt DROP COLUMN dismissed;
ALTER TABLE push_batch DROP COLUMN first_recipient, DROP COLUMN last_recipient;
