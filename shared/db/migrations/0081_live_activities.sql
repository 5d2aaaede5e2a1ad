-- Up Migration

-- Tokens of Live Activities. kind 'start': push-to-start token of a type of attributes (name). kind 'update': token of a running
-- activity (name is its id), which expires some hours after reported_at. They go with the installation.
CREATE TABLE live_activity_token (
  app_id       text NOT NULL,
  kind         text NOT NULL,
  name         text NOT NULL,
  installation bigint NOT NULL,
  token        text NOT NULL,
  reported_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, kind, name, installation),
  FOREIGN KEY (app_id, installation) REFERENCES installation (app_id, id) ON DELETE CASCADE
);
CREATE INDEX live_activity_token_installation ON live_activity_token (app_id, installation);
CREATE INDEX live_activity_token_token ON live_activity_token (app_id, token);
CREATE INDEX live_activity_token_reported_at ON live_activity_token (reported_at) WHERE kind = 'update';

-- The newest timestamp that was sent to an activity (kind 'activity', name is its id) or to a broadcast channel (kind 'channel').
CREATE TABLE live_activity_clock (
  app_id     text NOT NULL REFERENCES app ON DELETE CASCADE,
  kind       text NOT NULL,
  name       text NOT NULL,
  at         bigint NOT NULL,
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, kind, name)
);
CREATE INDEX live_activity_clock_updated_at ON live_activity_clock (updated_at);

-- Broadcast channels that this service has created or read at APNs. gone_at: APNs answered that the channel does not exist.
CREATE TABLE live_activity_channel (
  app_id     text NOT NULL REFERENCES app ON DELETE CASCADE,
  prod       text NOT NULL,
  channel    text NOT NULL,
  topic      text NOT NULL,
  storage    text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  gone_at    timestamptz(3),
  PRIMARY KEY (app_id, prod, channel)
);

-- Down Migration

DROP TABLE live_activity_channel;
DROP TABLE live_activity_clock;
DROP TABLE live_activity_token;
