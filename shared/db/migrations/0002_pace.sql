-- Up Migration

-- What an app used on one day (UTC): recipients handed to gateways, push calls and their peak per minute.
-- `last_grant` is how many recipients the last reservation was given: what a statement that adds to the row
-- can tell its caller (shared/db/tables/usage.ts). Kept 400 days.
CREATE TABLE usage_day (
  app_id      text NOT NULL,
  day         date NOT NULL,
  recipients  bigint NOT NULL DEFAULT 0,
  last_grant  bigint NOT NULL DEFAULT 0,
  calls       bigint NOT NULL DEFAULT 0,
  peak_calls_per_minute integer NOT NULL DEFAULT 0,
  PRIMARY KEY (app_id, day)
);
CREATE INDEX usage_day_day ON usage_day (day);
-- Every batch and every call changes the app's row of today: leave room for HOT updates.
ALTER TABLE usage_day SET (fillfactor = 50);

-- How many of a batch's recipients, the first of them, the daily cap let through; null until it was asked.
-- `slot_at` is when the pace of its push lets a batch begin, `slot_ms` how long it takes, `slot_epoch` the
-- pace it was reserved under.
ALTER TABLE push_batch
  ADD COLUMN granted integer,
  ADD COLUMN slot_at timestamptz(3),
  ADD COLUMN slot_ms integer,
  ADD COLUMN slot_epoch integer;

-- The pace of a push (flow_control): when the next slot begins. A changed pace begins a new epoch; slots of
-- an older one that would begin after `pace_epoch_at` are void.
ALTER TABLE notification
  ADD COLUMN pace_next_at timestamptz,
  ADD COLUMN pace_epoch integer NOT NULL DEFAULT 0,
  ADD COLUMN pace_epoch_at timestamptz;

-- Down Migration

ALTER TABLE notification DROP COLUMN pace_next_at, DROP COLUMN pace_epoch, DROP COLUMN pace_epoch_at;
ALTER TABLE push_batch
  DROP COLUMN granted, DROP COLUMN slot_at, DROP COLUMN slot_ms, DROP COLUMN slot_epoch;
DROP TABLE usage_day;
