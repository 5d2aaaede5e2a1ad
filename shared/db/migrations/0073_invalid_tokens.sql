-- Up Migration

-- What the answer about a token proves, and for which profile and form of token: null in rows of older processes, whose tokens are kept.
ALTER TABLE push_failure ADD COLUMN profile text, ADD COLUMN form text, ADD COLUMN is_proof boolean;

-- Recipients that were sent to by the form of their token, where the connector has several; null for others.
ALTER TABLE push_batch ADD COLUMN sent_by jsonb;

-- Profiles of which a push called so many tokens invalid that nothing was deleted; null for none.
ALTER TABLE notification ADD COLUMN kept_tokens jsonb;

-- Devices that receipts of the push deleted.
ALTER TABLE push_receipt_total ADD COLUMN deleted bigint NOT NULL DEFAULT 0;

-- Down Migration

ALTER TABLE push_failure DROP COLUMN profile, DROP COLUMN form, DROP COLUMN is_proof;
ALTER TABLE push_batch DROP COLUMN sent_by;
ALTER TABLE notification DROP COLUMN kept_tokens;
ALTER TABLE push_receipt_total DROP COLUMN deleted;
