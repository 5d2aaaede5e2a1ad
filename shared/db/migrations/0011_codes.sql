-- Up Migration

-- SMS signatures and templates with their review: `text` is in use, `pending_text` waits for approval.
CREATE TABLE sms_signature (
  app_id      text NOT NULL REFERENCES app ON DELETE CASCADE,
  name        text NOT NULL,
  is_approved boolean NOT NULL DEFAULT false,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  updated_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, name)
);
-- Every app has an approved signature of its own name (protocol/admin-api.md#apps).
INSERT INTO sms_signature (app_id, name, is_approved) SELECT app_id, name, true FROM app;

CREATE TABLE sms_template (
  app_id       text NOT NULL REFERENCES app ON DELETE CASCADE,
  name         text NOT NULL,
  type         text CHECK (type IN ('verification', 'notification')),
  text         text,
  pending_type text CHECK (pending_type IN ('verification', 'notification')),
  pending_text text,
  created_at   timestamptz(3) NOT NULL DEFAULT now(),
  updated_at   timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, name)
);

-- The code that a number was sent last for a purpose. `subject` is the account that asked, where only that
-- account may use it; `digest` is keyed by CARILLON_SECRET.
CREATE TABLE verification_code (
  app_id      text NOT NULL,
  purpose     text NOT NULL,
  number      text NOT NULL,
  subject     text NOT NULL DEFAULT '',
  id          uuid NOT NULL,
  digest      text NOT NULL,
  attempts    integer NOT NULL DEFAULT 0,
  expires_at  timestamptz(3) NOT NULL,
  PRIMARY KEY (app_id, purpose, number, subject)
);
CREATE INDEX verification_code_expires_at ON verification_code (expires_at);

-- Every message to a number within the last day: what the limits per number count.
CREATE TABLE sms_send (
  app_id      text NOT NULL,
  number      text NOT NULL,
  kind        text NOT NULL CHECK (kind IN ('verification', 'notification', 'voice')),
  sign        text NOT NULL,
  sent_at     timestamptz(3) NOT NULL
);
CREATE INDEX sms_send_number ON sms_send (app_id, number, sent_at);
CREATE INDEX sms_send_sent_at ON sms_send (sent_at);

-- Counted within a window that begins with its first: messages per network address, per block of numbers and
-- per app, the free quota, mails per recipient. `key` is a digest where it stands for a person.
CREATE TABLE send_budget (
  app_id      text NOT NULL,
  scope       text NOT NULL,
  key         text NOT NULL,
  since       timestamptz(3) NOT NULL,
  n           integer NOT NULL,
  PRIMARY KEY (app_id, scope, key)
);
CREATE INDEX send_budget_since ON send_budget (since);

-- Codes sent to a country and codes used, in buckets of five minutes; and where sending is broken off because
-- hardly any is used.
CREATE TABLE sms_conversion (
  app_id      text NOT NULL,
  prefix      text NOT NULL,
  bucket      timestamptz(3) NOT NULL,
  sent        integer NOT NULL DEFAULT 0,
  used        integer NOT NULL DEFAULT 0,
  PRIMARY KEY (app_id, prefix, bucket)
);
CREATE INDEX sms_conversion_bucket ON sms_conversion (bucket);
CREATE TABLE sms_breaker (
  app_id      text NOT NULL,
  prefix      text NOT NULL,
  opened_at   timestamptz(3) NOT NULL,
  open_until  timestamptz(3) NOT NULL,
  PRIMARY KEY (app_id, prefix)
);

-- A captcha and, once it was solved, the validate token that may be spent for it (as a digest).
CREATE TABLE captcha (
  app_id            text NOT NULL,
  token             text NOT NULL,
  answer            bytea NOT NULL,
  image             bytea NOT NULL,
  attempts          integer NOT NULL DEFAULT 0,
  expires_at        timestamptz(3) NOT NULL,
  validate_digest   bytea,
  PRIMARY KEY (app_id, token)
);
CREATE UNIQUE INDEX captcha_validate_digest ON captcha (app_id, validate_digest) WHERE validate_digest IS NOT NULL;
CREATE INDEX captcha_expires_at ON captcha (expires_at);

-- Down Migration

DROP TABLE captcha, sms_breaker, sms_conversion, send_budget, sms_send, verification_code, sms_template,
  sms_signature;
