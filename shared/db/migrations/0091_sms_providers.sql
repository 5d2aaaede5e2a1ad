-- Up Migration

-- Templates of SMS providers that a template stands for, reviewed together with its text.
ALTER TABLE sms_template ADD COLUMN providers jsonb, ADD COLUMN pending_providers jsonb;

-- What the provider said after it had taken a message: its id of the message, and the receipt.
ALTER TABLE outbox
  ADD COLUMN provider_id text,
  ADD COLUMN delivery text,
  ADD COLUMN delivery_reason text,
  ADD COLUMN delivered_at timestamptz(3);

COMMENT ON COLUMN sms_template.providers IS 'templates of SMS providers, for the text in use';
COMMENT ON COLUMN sms_template.pending_providers IS 'templates of SMS providers, for the text that waits';
COMMENT ON COLUMN outbox.provider_id IS 'id of the message at the SMS provider';
COMMENT ON COLUMN outbox.delivery IS 'receipt of the SMS provider: delivered or undelivered; null without a receipt';
COMMENT ON COLUMN outbox.delivery_reason IS 'stored reason of an undelivered message';
COMMENT ON COLUMN outbox.delivered_at IS 'when the receipt came';

-- Down Migration

ALTER TABLE outbox
  DROP COLUMN provider_id, DROP COLUMN delivery, DROP COLUMN delivery_reason, DROP COLUMN delivered_at;
ALTER TABLE sms_template DROP COLUMN providers, DROP COLUMN pending_providers;
