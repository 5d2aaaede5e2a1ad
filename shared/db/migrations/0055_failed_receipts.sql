-- Up Migration

-- Calls of gateways that were no receipts, or had a wrong signature, to be read again once the cause is gone. `call` is
-- encrypted, since it holds tokens of devices; a repeated call has the same `digest`.
CREATE TABLE failed_receipt (
  app_id     text NOT NULL,
  id         bigint GENERATED ALWAYS AS IDENTITY,
  connector  text NOT NULL,
  digest     text NOT NULL,
  status     smallint NOT NULL,
  reason     text NOT NULL,
  bytes      integer NOT NULL,
  call       bytea NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX failed_receipt_digest ON failed_receipt (app_id, connector, digest);
CREATE INDEX failed_receipt_created_at ON failed_receipt (created_at);

-- Down Migration

DROP TABLE failed_receipt;
