-- Up Migration

-- People who log in to the console by OpenID Connect are rows of console_token without a usable
-- digest: sessions, rights, audit, approvals and limits then work as for tokens.
ALTER TABLE console_token ADD COLUMN subject text, ADD COLUMN mail text;
CREATE UNIQUE INDEX console_token_subject ON console_token (subject);
ALTER TABLE console_session ADD COLUMN ends_at timestamptz(3);

COMMENT ON COLUMN console_token.subject IS 'issuer and subject of a person; null for a token';
COMMENT ON COLUMN console_token.mail IS 'mail address of a person, if the provider gave it';
COMMENT ON COLUMN console_session.ends_at IS 'end of a session by OpenID Connect; null for other sessions';

-- Down Migration

DELETE FROM console_token WHERE subject IS NOT NULL;
ALTER TABLE console_session DROP COLUMN ends_at;
DROP INDEX console_token_subject;
ALTER TABLE console_token DROP COLUMN subject, DROP COLUMN mail;
