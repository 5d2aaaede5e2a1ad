-- Up Migration

-- Columns keep their names, because processes of two versions run during an upgrade. The comments
-- give the names and words that the code uses.
COMMENT ON TABLE notification IS 'Pushes.';
COMMENT ON COLUMN notification.request IS 'Checked request of the push: data, target and options (Push.pushOrder).';
COMMENT ON COLUMN notification.planned_through IS 'Planning cursor: the highest installation id that is planned.';
COMMENT ON COLUMN notification.is_plan_held IS 'The planning of a paused or frozen push has no job until the push continues.';
COMMENT ON COLUMN notification.halts IS 'Profile errors: profiles that cannot send this push, with the reason (Push.profileErrors).';
COMMENT ON COLUMN notification.acked IS 'Messages that devices acknowledged on the device channel.';
COMMENT ON COLUMN notification.displaced IS 'Messages on the device channel that newer messages evicted.';
COMMENT ON COLUMN notification.resent_as IS 'Newest redrive of the push. Written for processes of earlier versions.';
COMMENT ON COLUMN push_batch.settled IS 'State of each recipient: one byte, 0 while open (RecipientStates).';
COMMENT ON COLUMN push_batch.moved IS 'Indexes of recipients that moved to retry batches (Batch.retried).';
COMMENT ON COLUMN push_batch.is_held IS 'The batch of a paused or frozen push has no job until the push continues.';
COMMENT ON COLUMN push_batch.has_job IS 'The batch has its own job. The planning job of a small push delivers its batches.';
COMMENT ON COLUMN push_batch.slot_at IS 'Start of the time slot that flow control has reserved.';
COMMENT ON COLUMN push_batch.rate_at IS 'Start of the time slot that the rate of the gateway has reserved.';
COMMENT ON COLUMN push_batch.granted IS 'Recipients within the daily cap of the app.';
COMMENT ON COLUMN shared_reading.reading IS 'Newest sample of the queues and of open pushes, which all processes share.';

-- Down Migration

COMMENT ON COLUMN shared_reading.reading IS NULL;
COMMENT ON COLUMN push_batch.granted IS NULL;
COMMENT ON COLUMN push_batch.rate_at IS NULL;
COMMENT ON COLUMN push_batch.slot_at IS NULL;
COMMENT ON COLUMN push_batch.has_job IS NULL;
COMMENT ON COLUMN push_batch.is_held IS NULL;
COMMENT ON COLUMN push_batch.moved IS NULL;
COMMENT ON COLUMN push_batch.settled IS NULL;
COMMENT ON COLUMN notification.resent_as IS NULL;
COMMENT ON COLUMN notification.displaced IS NULL;
COMMENT ON COLUMN notification.acked IS NULL;
COMMENT ON COLUMN notification.halts IS NULL;
COMMENT ON COLUMN notification.is_plan_held IS NULL;
COMMENT ON COLUMN notification.planned_through IS NULL;
COMMENT ON COLUMN notification.request IS NULL;
COMMENT ON TABLE notification IS NULL;
