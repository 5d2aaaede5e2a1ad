-- Up Migration

-- Totals of an app by day (UTC), kept for two years. Records of pushes end after seven days.
CREATE TABLE push_day (
  app_id    text NOT NULL,
  day       date NOT NULL,
  connector text NOT NULL,
  class     text NOT NULL,
  outcome   text NOT NULL,
  n         bigint NOT NULL,
  PRIMARY KEY (app_id, day, connector, class, outcome)
);
COMMENT ON TABLE push_day IS 'Recipients of the pushes that ended on a day, by connector, message class and outcome. The connector is empty for the number of pushes.';
COMMENT ON COLUMN push_day.outcome IS 'Outcome of a recipient, pushes, or a receipt: delivered, clicked, received, opened, dismissed.';
CREATE INDEX push_day_day ON push_day (day);

CREATE TABLE reason_day (
  app_id    text NOT NULL,
  day       date NOT NULL,
  connector text NOT NULL,
  reason    text NOT NULL,
  sample    text NOT NULL,
  n         bigint NOT NULL,
  PRIMARY KEY (app_id, day, connector, reason)
);
COMMENT ON TABLE reason_day IS 'Failures of a day by their most frequent reasons.';
COMMENT ON COLUMN reason_day.sample IS 'One stored reason with this text, with its code and values.';
CREATE INDEX reason_day_day ON reason_day (day);

CREATE TABLE installation_day (
  app_id   text NOT NULL,
  day      date NOT NULL,
  platform text NOT NULL,
  n        bigint NOT NULL,
  PRIMARY KEY (app_id, day, platform)
);
COMMENT ON TABLE installation_day IS 'Valid installations at the beginning of a day, by vendor or device type.';
CREATE INDEX installation_day_day ON installation_day (day);

-- When the totals of an app are computed next.
CREATE TABLE report_walk (
  app_id  text PRIMARY KEY REFERENCES app ON DELETE CASCADE,
  next_at timestamptz(3) NOT NULL DEFAULT '-infinity'
);

-- Down Migration

DROP TABLE report_walk, installation_day, reason_day, push_day;
