-- Up Migration

-- Who asked for a code, as a digest of the network address: the most used SDK sends some codes back without the number
-- that they were sent to. Empty for codes of before, which are found by their number only.
ALTER TABLE verification_code ADD COLUMN asked_from text NOT NULL DEFAULT '';
CREATE INDEX verification_code_asked_from ON verification_code (app_id, purpose, asked_from, expires_at);

-- Down Migration

ALTER TABLE verification_code DROP COLUMN asked_from;
