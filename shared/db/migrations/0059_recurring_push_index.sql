-- Up Migration

-- Pushes of a recurring push, by which it is limited and listed.
CREATE INDEX CONCURRENTLY notification_recurring ON notification (app_id, recurring_id, id) WHERE recurring_id IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY notification_recurring;
