-- Up Migration

-- device_token holds the token as it is compared, a token of APNs in lower case; this column its spelling, where the client sent
-- another one. A duty of the dispatcher rewrites the rows of older versions.
ALTER TABLE installation ADD COLUMN device_token_sent text;

-- Walk over the registration ids of an app that finds several installations with the same one: where it is, and when the next one
-- begins.
CREATE TABLE registration_walk (
  app_id  text PRIMARY KEY REFERENCES app ON DELETE CASCADE,
  after   text NOT NULL DEFAULT '',
  next_at timestamptz(3) NOT NULL DEFAULT '-infinity'
);

-- Down Migration

UPDATE installation SET device_token = device_token_sent WHERE lower(device_token_sent COLLATE "C") = device_token;
ALTER TABLE installation DROP COLUMN device_token_sent;
DROP TABLE registration_walk;
