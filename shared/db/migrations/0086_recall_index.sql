-- Up Migration

-- Recalls of a push: few among all pushes of an app.
CREATE INDEX CONCURRENTLY notification_recall_of ON notification (app_id, recall_of) WHERE recall_of IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY notification_recall_of;
