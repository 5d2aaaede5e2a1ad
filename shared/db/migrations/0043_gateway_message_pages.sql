-- Up Migration

-- Message ids of a push in pages: a gateway that takes one message per device gives one id per device.
CREATE INDEX CONCURRENTLY gateway_message_page ON gateway_message (app_id, push_id, id);

-- Down Migration

DROP INDEX CONCURRENTLY gateway_message_page;
