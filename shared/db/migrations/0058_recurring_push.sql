-- Up Migration

-- Pushes that are made again and again, at the times of a cron expression. `request` is the checked order that each start
-- copies, `body` what the caller wrote. `next_at`: the next start; null while disabled, and after the last one.
-- `skip_before`: earlier times are not caught up, because the push of that time may have been sent before a restore.
CREATE TABLE recurring_push (
  app_id          text NOT NULL,
  id              bigint GENERATED ALWAYS AS IDENTITY,
  name            text NOT NULL,
  expression      text NOT NULL,
  time_zone       text NOT NULL,
  starts_at       timestamptz(3),
  ends_at         timestamptz(3),
  is_enabled      boolean NOT NULL,
  body            jsonb NOT NULL,
  request         jsonb NOT NULL,
  notification_id text,
  life_seconds    float8,
  next_at         timestamptz(3),
  skip_before     timestamptz(3),
  last_at         timestamptz(3),
  last_push       text,
  starts          bigint NOT NULL DEFAULT 0,
  missed          bigint NOT NULL DEFAULT 0,
  held_back       bigint NOT NULL DEFAULT 0,
  created_by      text NOT NULL,
  created_token   bigint,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  changed_by      text NOT NULL,
  changed_token   bigint,
  changed_at      timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id),
  UNIQUE (app_id, name)
);
-- The dispatchers read what is due from here.
CREATE INDEX recurring_push_next_at ON recurring_push (next_at) WHERE next_at IS NOT NULL;

-- The recurring push that a push was made from.
ALTER TABLE notification ADD COLUMN recurring_id bigint;

-- Down Migration

ALTER TABLE notification DROP COLUMN recurring_id;
DROP TABLE recurring_push;
