-- Up Migration

-- One row per user of an app (protocol/users.md#user-fields). `password_hash` is Argon2id in PHC form, or what an import brought;
-- null: no password. A session token is derived from the nonce and found by its hash; the token itself is nowhere.
-- `auth_data` is null for users who never had any, {} for those who have none left.
CREATE TABLE app_user (
  app_id                text NOT NULL REFERENCES app ON DELETE CASCADE,
  id                    bigint GENERATED ALWAYS AS IDENTITY,
  object_id             text NOT NULL,
  username              text NOT NULL,
  password_hash         text,
  email                 text,
  email_verified        boolean,
  mobile_phone_number   text,
  mobile_phone_verified boolean NOT NULL DEFAULT false,
  auth_data             jsonb,
  acl                   jsonb,
  fields                jsonb NOT NULL DEFAULT '{}',
  session_nonce         bytea NOT NULL,
  session_hash          bytea NOT NULL,
  created_at            timestamptz(3) NOT NULL DEFAULT now(),
  updated_at            timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX app_user_object_id ON app_user (app_id, object_id);
CREATE UNIQUE INDEX app_user_username ON app_user (app_id, username);
CREATE UNIQUE INDEX app_user_email ON app_user (app_id, email) WHERE email IS NOT NULL;
CREATE UNIQUE INDEX app_user_mobile_phone_number ON app_user (app_id, mobile_phone_number)
  WHERE mobile_phone_number IS NOT NULL;
CREATE UNIQUE INDEX app_user_session_hash ON app_user (app_id, session_hash);
CREATE INDEX app_user_fields ON app_user USING gin (fields jsonb_path_ops);
-- Logins by third-party accounts change rows often: leave room for HOT updates.
ALTER TABLE app_user SET (fillfactor = 90);

-- Which third-party account belongs to which user (protocol/users.md#third-party-accounts): one user at most. Written only while the
-- user's row is locked. UnionIDs stand here under the name of their member, `_<platform>_unionid`.
CREATE TABLE user_identity (
  app_id   text NOT NULL,
  platform text NOT NULL,
  uid      text NOT NULL,
  user_id  bigint NOT NULL,
  PRIMARY KEY (app_id, platform, uid),
  FOREIGN KEY (app_id, user_id) REFERENCES app_user (app_id, id) ON DELETE CASCADE
);
CREATE INDEX user_identity_user ON user_identity (app_id, user_id);

-- Failed logins by the identifier that was submitted, whether there is such a user or not (protocol/users.md#account-lock).
-- `identifier` is a digest: no name, address or number is kept. `failed_at` holds the failures of the last 15 minutes.
CREATE TABLE login_lock (
  app_id         text NOT NULL REFERENCES app ON DELETE CASCADE,
  identifier     bytea NOT NULL,
  failed_at      timestamptz(3)[] NOT NULL,
  last_failed_at timestamptz(3) NOT NULL,
  locked_until   timestamptz(3),
  PRIMARY KEY (app_id, identifier)
);
CREATE INDEX login_lock_last_failed_at ON login_lock (last_failed_at);
ALTER TABLE login_lock SET (fillfactor = 50);

-- Down Migration

DROP TABLE login_lock, user_identity, app_user;
