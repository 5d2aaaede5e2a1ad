-- Up Migration

-- False for a row whose `auth_data` may hold tokens of platforms in the open: those of before, which a duty of the
-- dispatcher seals. Each entry of a sealed one has its secrets in the member `_sealed`.
ALTER TABLE app_user ADD COLUMN auth_sealed boolean NOT NULL DEFAULT false;
CREATE INDEX app_user_unsealed ON app_user (app_id, id) WHERE NOT auth_sealed AND auth_data IS NOT NULL;

-- Down Migration

ALTER TABLE app_user DROP COLUMN auth_sealed;
