-- Up Migration

-- Access tokens of gateways, shared by all threads and dispatchers. `credential` is a digest of the credentials
-- that a token was made with, `value` is encrypted; both null while the first one is being fetched. The
-- dispatcher that set a `claimed_until` in the future renews it, no other one.
CREATE TABLE gateway_token (
  app_id         text NOT NULL REFERENCES app ON DELETE CASCADE,
  connector      text NOT NULL,
  credential     bytea NOT NULL,
  value          bytea,
  made_at        timestamptz(3),
  expires_at     timestamptz(3),
  is_replacement boolean NOT NULL DEFAULT false,
  claimed_until  timestamptz(3),
  PRIMARY KEY (app_id, connector, credential)
);

-- What one profile used of its gateway on one day of China time. The row of class '' counts what was handed over;
-- rows of the gateway's own classes say why a class is closed for the rest of the day. Kept 400 days.
CREATE TABLE gateway_day (
  app_id        text NOT NULL,
  connector     text NOT NULL,
  profile       text NOT NULL,
  class         text NOT NULL,
  day           date NOT NULL,
  requests      bigint NOT NULL DEFAULT 0,
  recipients    bigint NOT NULL DEFAULT 0,
  closed_reason text,
  PRIMARY KEY (app_id, connector, profile, class, day)
);
CREATE INDEX gateway_day_day ON gateway_day (day);
ALTER TABLE gateway_day SET (fillfactor = 50);

-- Devices that batches of test pushes were let through to, per day of China time; goes with gateway_day.
CREATE TABLE gateway_test (
  app_id     text NOT NULL,
  connector  text NOT NULL,
  day        date NOT NULL,
  push_id    bigint NOT NULL,
  batch_id   bigint NOT NULL,
  devices    integer NOT NULL,
  PRIMARY KEY (app_id, connector, day, push_id, batch_id)
);
CREATE INDEX gateway_test_day ON gateway_test (day);

-- The rate of a profile over all dispatchers: `units` were reserved since the ramp began; the last of them
-- leave at `busy_until`.
CREATE TABLE gateway_rate (
  app_id     text NOT NULL,
  connector  text NOT NULL,
  profile    text NOT NULL,
  began_at   timestamptz NOT NULL,
  units      float8 NOT NULL,
  busy_until timestamptz NOT NULL,
  PRIMARY KEY (app_id, connector, profile)
);
ALTER TABLE gateway_rate SET (fillfactor = 50);

-- When the rate of its gateway lets a batch begin, and how long it is to take.
ALTER TABLE push_batch ADD COLUMN rate_at timestamptz(3), ADD COLUMN rate_ms integer;

-- What gateways called the messages they took, for questions to their support. Kept 7 days.
CREATE TABLE gateway_message (
  app_id     text NOT NULL,
  id         bigint GENERATED ALWAYS AS IDENTITY,
  push_id    bigint NOT NULL,
  batch_id   bigint NOT NULL,
  connector  text NOT NULL,
  message_id text NOT NULL,
  devices    integer NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
);
CREATE INDEX gateway_message_push ON gateway_message (app_id, push_id);
CREATE INDEX gateway_message_created_at ON gateway_message (created_at);

-- Down Migration

DROP TABLE gateway_message;
ALTER TABLE push_batch DROP COLUMN rate_at, DROP COLUMN rate_ms;
DROP TABLE gateway_rate, gateway_test, gateway_day, gateway_token;
