-- Up Migration

-- Tokens that a version before wrote as they were sent: none, once they are rewritten.
CREATE INDEX CONCURRENTLY installation_token_spelling ON installation (app_id, id)
  WHERE device_token COLLATE "C" ~ '^[0-9A-Fa-f]*[A-F][0-9A-Fa-f]*$';

-- Down Migration

DROP INDEX CONCURRENTLY installation_token_spelling;
