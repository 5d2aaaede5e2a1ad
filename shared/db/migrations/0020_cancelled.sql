-- Up Migration

-- Cancelled pushes that were planned, at least in part: their batches are still counted, and so need their jobs.
CREATE INDEX notification_cancelled ON notification (id) WHERE state = 'cancelled' AND devices > 0;

-- Down Migration

DROP INDEX notification_cancelled;
