-- Up Migration

-- Redrives of a push: a handful among all pushes of an app.
CREATE INDEX CONCURRENTLY notification_redrive_of ON notification (app_id, redrive_of) WHERE redrive_of IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY notification_redrive_of;
