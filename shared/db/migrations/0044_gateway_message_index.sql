-- Up Migration

-- gateway_message_page begins with the same columns.
DROP INDEX CONCURRENTLY gateway_message_push;

-- Down Migration

CREATE INDEX CONCURRENTLY gateway_message_push ON gateway_message (app_id, push_id);
