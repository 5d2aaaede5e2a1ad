-- Up Migration

-- A link in a mail: found by the digest of its token, good while the user still has the address it was sent to.
CREATE TABLE link_token (
  app_id     text NOT NULL,
  digest     bytea NOT NULL PRIMARY KEY,
  purpose    text NOT NULL CHECK (purpose IN ('verifyEmail', 'resetPassword')),
  user_id    bigint NOT NULL,
  email      text NOT NULL,
  expires_at timestamptz(3) NOT NULL,
  -- Deferred: a link for nobody is written, for its time only, and taken back.
  FOREIGN KEY (app_id, user_id) REFERENCES app_user (app_id, id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX link_token_user ON link_token (app_id, user_id, purpose);
CREATE INDEX link_token_expires_at ON link_token (expires_at);

-- Down Migration

DROP TABLE link_token;
