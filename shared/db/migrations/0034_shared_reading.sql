-- Up Migration

-- The last reading of the queues and of open pushes, for the metrics of all processes: one of them reads at a time. Unlogged:
-- a lost reading is made again.
CREATE UNLOGGED TABLE shared_reading (
  id      boolean PRIMARY KEY CHECK (id),
  next_at timestamptz NOT NULL,
  read_at timestamptz,
  reading jsonb
);

-- Down Migration

DROP TABLE shared_reading;
