-- Up Migration

-- Codes that only one account may use, found when all ways into the account end.
CREATE INDEX verification_code_subject ON verification_code (app_id, subject) WHERE subject <> '';

-- Down Migration

DROP INDEX verification_code_subject;
