-- Up Migration

-- Which devices gateways told of, one bit each: installation `id` has bit id % 512 of block id / 512. A receipt that
-- comes again sets a bit that is set. Two bits per device where a push went to many, and at most one row (some 300
-- bytes with its index entry) per device where its devices lie far apart. Goes with the push record.
CREATE TABLE push_receipt (
  app_id     text NOT NULL,
  push_id    bigint NOT NULL,
  connector  text NOT NULL,
  block      bigint NOT NULL,
  delivered  bit(512) NOT NULL DEFAULT 0::bit(512),
  clicked    bit(512) NOT NULL DEFAULT 0::bit(512),
  PRIMARY KEY (app_id, push_id, connector, block)
);
ALTER TABLE push_receipt SET (fillfactor = 70);

-- The bits of a push added up, in a few slots, so that calls at the same time do not wait for each other's commit.
CREATE TABLE push_receipt_total (
  app_id     text NOT NULL,
  push_id    bigint NOT NULL,
  connector  text NOT NULL,
  slot       smallint NOT NULL,
  delivered  bigint NOT NULL,
  clicked    bigint NOT NULL,
  PRIMARY KEY (app_id, push_id, connector, slot)
);
ALTER TABLE push_receipt_total SET (fillfactor = 50);

-- Devices that a receipt called dead and that are not deleted yet: until another push meets the same where the gateway
-- only advises it (`is_sure` false), or until the push of `push_id` is known to have reached any device at all.
-- `saved_at` is the installation's `updated_at` then: saved since, it stays. One row per device.
CREATE TABLE dead_notice (
  app_id       text NOT NULL,
  installation bigint NOT NULL,
  push_id      bigint NOT NULL,
  connector    text NOT NULL,
  saved_at     timestamptz(3) NOT NULL,
  is_sure      boolean NOT NULL,
  noted_at     timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, installation)
);
CREATE INDEX dead_notice_push ON dead_notice (app_id, push_id, connector) WHERE is_sure;
CREATE INDEX dead_notice_noted_at ON dead_notice (noted_at);

-- Down Migration

DROP TABLE dead_notice, push_receipt_total, push_receipt;
