-- Up Migration

-- When a dispatcher probes the gateway behind its open breaker next; NULL unless it is open.
ALTER TABLE breaker_state ADD COLUMN next_probe_at timestamptz(3);

-- Down Migration

ALTER TABLE breaker_state DROP COLUMN next_probe_at;
