-- Up Migration

-- Members of the vendor by message class. No secret, so it is not part of the encrypted credentials.
ALTER TABLE push_profile ADD COLUMN message_classes jsonb;

-- Down Migration

ALTER TABLE push_profile DROP COLUMN message_classes;
