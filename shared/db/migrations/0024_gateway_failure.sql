-- Up Migration

-- Why a gateway could not be asked last, by one row per profile, for people who ask. Gone when it answers again.
CREATE TABLE gateway_failure (
  app_id      text NOT NULL,
  connector   text NOT NULL,
  profile     text NOT NULL,
  reason      text NOT NULL,
  at          timestamptz(3) NOT NULL,
  PRIMARY KEY (app_id, connector, profile),
  FOREIGN KEY (app_id, connector, profile) REFERENCES push_profile (app_id, connector, name) ON DELETE CASCADE
);

-- Down Migration

DROP TABLE gateway_failure;
