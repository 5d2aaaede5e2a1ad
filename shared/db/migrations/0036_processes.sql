-- Up Migration

-- Register of running processes: each renews its row every 5 s. Unlogged: after a crash of the database the processes
-- write their rows again.
CREATE UNLOGGED TABLE process_seen (
  id          text PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('api', 'dispatcher')),
  host        text NOT NULL,
  pid         integer NOT NULL,
  version     text NOT NULL,
  threads     integer NOT NULL,
  connections integer NOT NULL,
  started_at  timestamptz(3) NOT NULL,
  seen_at     timestamptz(3) NOT NULL
);

-- Down Migration

DROP TABLE process_seen;
