-- Up Migration

-- Failed messages, for the operator who sends them again: a handful among all of an app.
CREATE INDEX CONCURRENTLY outbox_failed ON outbox (app_id, id) WHERE state = 'failed';

-- Down Migration

DROP INDEX CONCURRENTLY outbox_failed;
