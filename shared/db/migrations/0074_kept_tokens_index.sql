-- Up Migration

-- Pushes whose invalid tokens wait for an operator: a handful.
CREATE INDEX CONCURRENTLY notification_kept_tokens ON notification (app_id, id) WHERE kept_tokens IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY notification_kept_tokens;
