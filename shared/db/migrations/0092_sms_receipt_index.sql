-- Up Migration

-- Receipts of Tencent Cloud name the id of the provider only.
CREATE INDEX CONCURRENTLY outbox_provider_id ON outbox (provider_id) WHERE provider_id IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY outbox_provider_id;
