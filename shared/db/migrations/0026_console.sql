-- Up Migration

-- A token of a person or a machine for the admin API, beside CARILLON_ADMIN_TOKEN. Only its SHA-256 is stored.
CREATE TABLE console_token (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest      bytea NOT NULL UNIQUE,
  name        text NOT NULL,
  role        text NOT NULL CHECK (role IN ('viewer', 'sender', 'operator', 'owner')),
  -- Apps that the token may see and change; NULL for all.
  apps        text[],
  created_by  text NOT NULL,
  created_at  timestamptz(3) NOT NULL,
  expires_at  timestamptz(3),
  used_at     timestamptz(3)
);

-- A session of the console. `token_id` is NULL for one of CARILLON_ADMIN_TOKEN. `admin_mark` is derived from that token: when
-- it changes, all sessions end.
CREATE TABLE console_session (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest      bytea NOT NULL UNIQUE,
  admin_mark  bytea NOT NULL,
  token_id    bigint REFERENCES console_token ON DELETE CASCADE,
  address     text NOT NULL,
  agent       text NOT NULL,
  created_at  timestamptz(3) NOT NULL,
  seen_at     timestamptz(3) NOT NULL
);
CREATE INDEX console_session_token ON console_session (token_id);

-- A code of a link that logs in once.
CREATE TABLE console_login_code (
  digest      bytea PRIMARY KEY,
  admin_mark  bytea NOT NULL,
  token_id    bigint REFERENCES console_token ON DELETE CASCADE,
  expires_at  timestamptz(3) NOT NULL
);
CREATE INDEX console_login_code_token ON console_login_code (token_id);

-- Changes by callers of the admin API, each written in the transaction of its change. Secrets are masked. Kept 400 days.
CREATE TABLE audit (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at          timestamptz(3) NOT NULL DEFAULT now(),
  app_id      text,
  actor_name  text NOT NULL,
  actor_role  text NOT NULL,
  token_id    bigint,
  address     text NOT NULL,
  request_id  text NOT NULL,
  action      text NOT NULL,
  target      text NOT NULL,
  before      jsonb,
  after       jsonb
);
CREATE INDEX audit_app ON audit (app_id, id);
CREATE INDEX audit_at ON audit (at);

-- Down Migration

DROP TABLE audit, console_login_code, console_session, console_token;
