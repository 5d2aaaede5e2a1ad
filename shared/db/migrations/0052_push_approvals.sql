-- Up Migration

-- Pushes to more devices than the app's option `approvalAboveDevices`: `above` is that number, null for a push that was approved
-- before it was planned. A push waits while `given_at` is null.
CREATE TABLE push_approval (
  app_id   text NOT NULL,
  push_id  bigint NOT NULL,
  above    bigint,
  asked_at timestamptz NOT NULL DEFAULT now(),
  given_by text,
  given_at timestamptz,
  PRIMARY KEY (app_id, push_id),
  FOREIGN KEY (app_id, push_id) REFERENCES notification (app_id, id) ON DELETE CASCADE
);

-- Down Migration

DROP TABLE push_approval;
