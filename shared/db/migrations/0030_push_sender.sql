-- Up Migration

-- Caller of the admin API that sent a push, by name and token; NULL for a push of the app itself. `created_token` is NULL for
-- CARILLON_ADMIN_TOKEN too.
ALTER TABLE notification ADD COLUMN created_by text;
ALTER TABLE notification ADD COLUMN created_token bigint;

-- Down Migration

ALTER TABLE notification DROP COLUMN created_by;
ALTER TABLE notification DROP COLUMN created_token;
