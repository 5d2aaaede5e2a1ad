-- Up Migration

-- The last mail to the operator that credentials of a profile end: `days` before their end. Another end begins again.
CREATE TABLE credential_notice (
  app_id    text NOT NULL,
  connector text NOT NULL,
  name      text NOT NULL,
  ends_at   timestamptz(3) NOT NULL,
  days      integer NOT NULL,
  PRIMARY KEY (app_id, connector, name),
  FOREIGN KEY (app_id, connector, name) REFERENCES push_profile ON DELETE CASCADE
);

-- Down Migration

DROP TABLE credential_notice;
