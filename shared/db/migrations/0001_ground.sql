-- Up Migration

-- An application: keys and secret options are encrypted (AES-256-GCM under CARILLON_SECRET).
CREATE TABLE app (
  app_id      text PRIMARY KEY,
  name        text NOT NULL,
  edition     text NOT NULL CHECK (edition IN ('home', 'international')),
  plan        text NOT NULL CHECK (plan IN ('commercial', 'development')),
  secrets     bytea NOT NULL,
  options     jsonb NOT NULL DEFAULT '{}',
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  updated_at  timestamptz(3) NOT NULL DEFAULT now()
);

CREATE TABLE push_profile (
  app_id      text NOT NULL REFERENCES app ON DELETE CASCADE,
  connector   text NOT NULL,
  name        text NOT NULL,
  credentials bytea NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  updated_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, connector, name)
);

-- One row per installation of an app on a device. `vendor` is the canonical label, `vendor_name` the
-- spelling it was stored with; `wire_names` says whether topic and team id came under their wire names.
CREATE TABLE installation (
  app_id          text NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  object_id       text NOT NULL,
  device_type     text NOT NULL,
  device_token    text,
  installation_id text,
  vendor          text,
  vendor_name     text,
  registration_id text,
  device_profile  text,
  topic           text,
  team_id         text,
  wire_names      boolean NOT NULL DEFAULT false,
  channels        text[],
  valid           boolean NOT NULL DEFAULT true,
  time_zone       text,
  badge           integer,
  fields          jsonb NOT NULL DEFAULT '{}',
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX installation_object_id ON installation (app_id, object_id);
CREATE UNIQUE INDEX installation_installation_id ON installation (app_id, installation_id)
  WHERE installation_id IS NOT NULL;
CREATE UNIQUE INDEX installation_device_token ON installation (app_id, device_token)
  WHERE device_token IS NOT NULL;
CREATE INDEX installation_registration_id ON installation (app_id, registration_id)
  WHERE registration_id IS NOT NULL;
CREATE INDEX installation_device_type ON installation (app_id, device_type, vendor);
CREATE INDEX installation_updated_at ON installation (app_id, updated_at);
CREATE INDEX installation_channels ON installation USING gin (channels);
CREATE INDEX installation_fields ON installation USING gin (fields jsonb_path_ops);
-- Badges and touches change rows often: leave room for HOT updates.
ALTER TABLE installation SET (fillfactor = 85);

-- A push record. `state` is ours (see dispatcher/README.md); the public `status` is derived from it.
CREATE TABLE notification (
  app_id          text NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  object_id       text NOT NULL,
  notification_id text NOT NULL,
  state           text NOT NULL CHECK (state IN ('scheduled', 'queued', 'sending', 'done', 'failed', 'cancelled')),
  error           text,
  request         jsonb NOT NULL,
  prod            text NOT NULL CHECK (prod IN ('dev', 'prod')),
  from_service    text NOT NULL DEFAULT 'push',
  push_time       timestamptz(3) NOT NULL,
  expires_at      timestamptz(3) NOT NULL,
  -- Planning: the highest installation id already written into batches, and how many were matched.
  planned_through bigint NOT NULL DEFAULT 0,
  is_planned      boolean NOT NULL DEFAULT false,
  devices         bigint NOT NULL DEFAULT 0,
  -- Set when the record is closed; until then totals are summed from the batches.
  totals          jsonb,
  acked           bigint NOT NULL DEFAULT 0,
  -- Profiles that were given up because of their credentials or configuration: "connector/profile" → sentence.
  halts           jsonb NOT NULL DEFAULT '{}',
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  first_sent_at   timestamptz(3),
  finished_at     timestamptz(3),
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX notification_object_id ON notification (app_id, object_id);
CREATE INDEX notification_notification_id ON notification (app_id, notification_id);
CREATE INDEX notification_open ON notification (state, id) WHERE state IN ('queued', 'sending');
CREATE INDEX notification_created_at ON notification (created_at);

-- A batch: one app, push, connector and profile, at most 1000 installations. `settled` holds one byte per
-- recipient (shared/domain/outcome.ts); `badges` the numbers counted for them, once.
CREATE TABLE push_batch (
  app_id      text NOT NULL,
  id          bigint GENERATED ALWAYS AS IDENTITY,
  push_id     bigint NOT NULL,
  connector   text NOT NULL,
  profile     text NOT NULL,
  recipients  bigint[] NOT NULL,
  badges      integer[],
  settled     bytea,
  is_settled  boolean NOT NULL DEFAULT false,
  totals      jsonb,
  attempt     integer NOT NULL DEFAULT 0,
  has_job     boolean NOT NULL DEFAULT true,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  settled_at  timestamptz(3),
  PRIMARY KEY (app_id, id)
);
CREATE INDEX push_batch_push ON push_batch (app_id, push_id, is_settled);

-- Why a recipient was not reached: kept 7 days. Holds no token.
CREATE TABLE push_failure (
  app_id      text NOT NULL,
  push_id     bigint NOT NULL,
  installation bigint NOT NULL,
  object_id   text,
  connector   text NOT NULL,
  outcome     text NOT NULL,
  status      integer NOT NULL,
  reason      text NOT NULL,
  -- Set where the gateway said that the token is dead: the installation's updated_at at that time. It is
  -- deleted only if it was not saved since, and only when the push had a success (protocol/delivery.md#promise-7).
  dead_as_of  timestamptz(3),
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, push_id, installation)
);
CREATE INDEX push_failure_created_at ON push_failure (created_at);

-- req_id: the first reply, given again for five minutes (protocol/push.md#repeated-requests).
CREATE TABLE request_ledger (
  app_id      text NOT NULL,
  req_id      text NOT NULL,
  object_id   text NOT NULL,
  accepted_at timestamptz(3) NOT NULL,
  PRIMARY KEY (app_id, req_id)
);
CREATE INDEX request_ledger_accepted_at ON request_ledger (accepted_at);

-- The pending entry of a scheduled push; `id` is the integer that cancels it.
CREATE TABLE scheduled_push (
  id          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  app_id      text NOT NULL,
  push_id     bigint NOT NULL,
  push_time   timestamptz(3) NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX scheduled_push_push ON scheduled_push (app_id, push_id);

-- Our own channel: messages to deliver (one per push and rendering), their recipients, and the connections of devices.
-- `content` is json, not jsonb: devices get the members in the order they were written.
CREATE TABLE channel_message (
  app_id      text NOT NULL,
  id          bigint GENERATED ALWAYS AS IDENTITY,
  push_id     bigint NOT NULL,
  digest      bytea NOT NULL,
  content     json NOT NULL,
  expires_at  timestamptz(3) NOT NULL,
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX channel_message_content ON channel_message (app_id, push_id, digest);
CREATE INDEX channel_message_expires_at ON channel_message (expires_at);

-- A letter: one message waiting for one installation. It is deleted by the acknowledgement.
CREATE TABLE channel_inbox (
  app_id       text NOT NULL,
  id           bigint GENERATED ALWAYS AS IDENTITY,
  installation bigint NOT NULL,
  push_id      bigint NOT NULL,
  message_id   bigint NOT NULL,
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX channel_inbox_letter ON channel_inbox (app_id, installation, push_id);
CREATE INDEX channel_inbox_message ON channel_inbox (app_id, message_id);

-- Recipients for which a push was stored already, one row per store (at most 1000 installations, sorted): a repeated
-- store finds its installations here after their messages were acknowledged. Eight bytes per recipient;
-- a message kept until its expiry would cost some 250 with its index entries.
CREATE TABLE channel_deposit (
  app_id        text NOT NULL,
  id            bigint GENERATED ALWAYS AS IDENTITY,
  push_id       bigint NOT NULL,
  lowest        bigint NOT NULL,
  highest       bigint NOT NULL,
  installations bigint[] NOT NULL,
  expires_at    timestamptz(3) NOT NULL,
  PRIMARY KEY (app_id, id)
);
CREATE INDEX channel_deposit_push ON channel_deposit (app_id, push_id, highest);
CREATE INDEX channel_deposit_expires_at ON channel_deposit (expires_at);

-- An api process that serves devices. One that stopped seeing to its row is dead, and its sessions with it.
CREATE TABLE channel_node (
  id          uuid PRIMARY KEY,
  seen_at     timestamptz(3) NOT NULL DEFAULT now()
);

-- Who is connected where. A later login has a higher `session_id`, whatever the process: the lower one closes.
CREATE TABLE channel_session (
  app_id       text NOT NULL,
  installation bigint NOT NULL,
  node_id      uuid NOT NULL REFERENCES channel_node ON DELETE CASCADE,
  session_id   bigint GENERATED BY DEFAULT AS IDENTITY,
  since        timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, installation)
);
CREATE INDEX channel_session_node ON channel_session (node_id);

-- Mail and SMS that were sent, or would have been where no supplier is set. `body` is encrypted.
CREATE TABLE outbox (
  app_id      text NOT NULL,
  id          bigint GENERATED ALWAYS AS IDENTITY,
  kind        text NOT NULL CHECK (kind IN ('sms', 'mail')),
  recipient   text NOT NULL,
  type        text NOT NULL,
  body        bytea NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
);
CREATE INDEX outbox_recipient ON outbox (app_id, recipient, id);

-- Calls counted per app and minute, shared by all api processes; the columns are the limiter library's.
CREATE UNLOGGED TABLE rate_limit (
  key     varchar(255) PRIMARY KEY,
  points  integer NOT NULL DEFAULT 0,
  expire  bigint
);

-- Down Migration

DROP TABLE rate_limit, outbox, channel_session, channel_node, channel_deposit, channel_inbox, channel_message,
  scheduled_push, request_ledger, push_failure, push_batch, notification, installation, push_profile, app;
