-- Up Migration

-- Users whose third-party accounts the background job still has to seal.
CREATE INDEX CONCURRENTLY app_user_half_sealed ON app_user (app_id, id)
  WHERE NOT auth_sealed_whole AND auth_data IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY app_user_half_sealed;
