-- Up Migration

-- Endpoints of webhooks.
CREATE TABLE webhook (
  app_id          text NOT NULL,
  name            text NOT NULL,
  events          text[] NOT NULL,
  format          text NOT NULL,
  language        text,
  secrets         bytea NOT NULL,
  previous_key    bytea,
  previous_until  timestamptz(3),
  is_enabled      boolean NOT NULL DEFAULT true,
  off_reason      text,
  off_at          timestamptz(3),
  failures        integer NOT NULL DEFAULT 0,
  failing_since   timestamptz(3),
  is_full         boolean NOT NULL DEFAULT false,
  dropped         bigint NOT NULL DEFAULT 0,
  dropped_at      timestamptz(3),
  due_at          timestamptz(3),
  is_paused       boolean NOT NULL DEFAULT false,
  leased_by       uuid,
  leased_until    timestamptz(3),
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  updated_at      timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, name)
);
CREATE INDEX webhook_due_at ON webhook (due_at) WHERE due_at IS NOT NULL;

COMMENT ON COLUMN webhook.app_id IS 'owner: an app, or an empty text for the service';
COMMENT ON COLUMN webhook.secrets IS 'encrypted: URL, signing key, signing secret of a chat robot';
COMMENT ON COLUMN webhook.previous_key IS 'encrypted: signing key before the last rotation; signs too until previous_until';
COMMENT ON COLUMN webhook.off_reason IS 'why the service switched the endpoint off: gone, failing; null if it did not';
COMMENT ON COLUMN webhook.failures IS 'failed attempts since the last success; redeliveries do not count';
COMMENT ON COLUMN webhook.is_full IS 'true while the limit of waiting deliveries is reached: new events are dropped';
COMMENT ON COLUMN webhook.dropped IS 'events that were dropped because the endpoint was full';
COMMENT ON COLUMN webhook.due_at IS 'when a dispatcher must look for due deliveries; null if none waits';
COMMENT ON COLUMN webhook.is_paused IS 'true if the endpoint does not answer: new events wait until due_at';
COMMENT ON COLUMN webhook.leased_by IS 'dispatcher that sends to the endpoint, until leased_until';

-- One event for one endpoint: the outbox, and the log of deliveries.
CREATE TABLE webhook_delivery (
  app_id       text NOT NULL,
  id           bigint GENERATED ALWAYS AS IDENTITY,
  webhook      text NOT NULL,
  type         text NOT NULL,
  source_app   text NOT NULL,
  occurred_at  timestamptz(3) NOT NULL,
  data         jsonb,
  batch_id     bigint,
  first_index  integer,
  once_key     text,
  state        text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
  attempts     integer NOT NULL DEFAULT 0,
  is_manual    boolean NOT NULL DEFAULT false,
  next_at      timestamptz(3) DEFAULT now(),
  attempted_at timestamptz(3),
  status       integer,
  reason       text,
  response     text,
  ended_at     timestamptz(3),
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, webhook, id),
  FOREIGN KEY (app_id, webhook) REFERENCES webhook (app_id, name) ON DELETE CASCADE
);
CREATE INDEX webhook_delivery_next_at ON webhook_delivery (app_id, webhook, next_at) WHERE state = 'waiting';
CREATE UNIQUE INDEX webhook_delivery_once_key ON webhook_delivery (app_id, webhook, once_key) WHERE once_key IS NOT NULL;

COMMENT ON COLUMN webhook_delivery.source_app IS 'app of the event; an empty text for an event of the service';
COMMENT ON COLUMN webhook_delivery.data IS 'data of the event; null for recipients.outcome, which is read from the batch';
COMMENT ON COLUMN webhook_delivery.batch_id IS 'recipients.outcome: the batch, and the first of up to 500 positions';
COMMENT ON COLUMN webhook_delivery.once_key IS 'an event with the same key is written once; null for other events';
COMMENT ON COLUMN webhook_delivery.is_manual IS 'true for a redelivery: it is also sent while the endpoint is off, and does not count as its failure';
COMMENT ON COLUMN webhook_delivery.status IS 'HTTP status of the last attempt; null without a response';
COMMENT ON COLUMN webhook_delivery.response IS 'first 1 KB of the last response';

-- Down Migration

DROP TABLE webhook_delivery;
DROP TABLE webhook;
