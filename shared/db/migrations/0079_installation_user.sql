-- Up Migration

-- Devices of one user, among which a push with lastActiveDeviceOnly takes the one that was saved last.
CREATE INDEX CONCURRENTLY installation_user ON installation (app_id, (fields -> 'user' ->> 'objectId'))
  WHERE (fields -> 'user' ->> 'objectId') IS NOT NULL;

-- Down Migration

DROP INDEX CONCURRENTLY installation_user;
