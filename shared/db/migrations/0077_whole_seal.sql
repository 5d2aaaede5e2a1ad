-- Up Migration

-- False for a row whose `auth_data` may hold secrets of platforms in clear: versions before sealed
-- the members that they knew as secrets (`auth_sealed`); this one seals all but a list of harmless
-- members. A background job of the dispatcher seals the rows of older versions.
ALTER TABLE app_user ADD COLUMN auth_sealed_whole boolean NOT NULL DEFAULT false;

-- Down Migration

ALTER TABLE app_user DROP COLUMN auth_sealed_whole;
