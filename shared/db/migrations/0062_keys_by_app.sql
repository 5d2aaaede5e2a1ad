-- Up Migration

-- A database that is spread over servers by app_id needs it in every unique key, and ids of bigint.
-- Accepted: both tables are small, scheduled pushes and the links of one day; the version before reads a bigint as it reads an integer.
ALTER TABLE scheduled_push ALTER COLUMN id TYPE bigint, DROP CONSTRAINT scheduled_push_pkey, ADD PRIMARY KEY (app_id, id);
ALTER TABLE link_token DROP CONSTRAINT link_token_pkey, ADD PRIMARY KEY (app_id, digest);
-- The key of a link is all that its request has.
CREATE INDEX link_token_digest ON link_token (digest);

-- Down Migration

DROP INDEX link_token_digest;
ALTER TABLE link_token DROP CONSTRAINT link_token_pkey, ADD PRIMARY KEY (digest);
ALTER TABLE scheduled_push DROP CONSTRAINT scheduled_push_pkey, ADD PRIMARY KEY (id), ALTER COLUMN id TYPE integer;
