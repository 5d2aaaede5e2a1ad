-- Up Migration

-- Before this time a batch of recipients that are tried again is not sent, whatever brings it to a dispatcher.
ALTER TABLE push_batch ADD COLUMN not_before timestamptz;

-- Places of recipients that went into retry batches while the rest of the batch stayed open. Kept apart from
-- `settled`, which a worker that comes late may overwrite: who is here is counted there.
ALTER TABLE push_batch ADD COLUMN moved int[];

-- Down Migration

ALTER TABLE push_batch DROP COLUMN moved;
ALTER TABLE push_batch DROP COLUMN not_before;
