-- Up Migration

-- `paused`: nothing of the push is planned or sent until it is resumed. What a dispatcher takes up in this
-- state is held: its job ends, and resuming writes a new one. So each batch and each planning has one job at most.
ALTER TABLE notification DROP CONSTRAINT notification_state_check;
ALTER TABLE notification ADD CONSTRAINT notification_state_check
  CHECK (state IN ('scheduled', 'queued', 'sending', 'paused', 'done', 'failed', 'cancelled'));
ALTER TABLE notification ADD COLUMN is_plan_held boolean NOT NULL DEFAULT false;
ALTER TABLE push_batch ADD COLUMN is_held boolean NOT NULL DEFAULT false;

DROP INDEX notification_open;
CREATE INDEX notification_open ON notification (state, id) WHERE state IN ('queued', 'sending', 'paused');
-- Paused pushes that expire are taken up again, so that their recipients are counted.
CREATE INDEX notification_paused ON notification (expires_at) WHERE state = 'paused';

-- The scheduler reads what is due from here.
CREATE INDEX scheduled_push_push_time ON scheduled_push (push_time);

-- Down Migration

DROP INDEX scheduled_push_push_time, notification_paused, notification_open;
CREATE INDEX notification_open ON notification (state, id) WHERE state IN ('queued', 'sending');
ALTER TABLE push_batch DROP COLUMN is_held;
ALTER TABLE notification DROP COLUMN is_plan_held;
ALTER TABLE notification DROP CONSTRAINT notification_state_check;
ALTER TABLE notification ADD CONSTRAINT notification_state_check
  CHECK (state IN ('scheduled', 'queued', 'sending', 'done', 'failed', 'cancelled'));
