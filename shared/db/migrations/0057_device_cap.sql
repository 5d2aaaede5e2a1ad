-- Up Migration

-- Pushes that a device got on a day (UTC), where a limit per device applies: written when a push is planned, deleted after the
-- day. Later pushes of the day change the row in its page. By day first, since the cleaner reads it so.
CREATE TABLE device_day (
  day          date NOT NULL,
  app_id       text NOT NULL,
  installation bigint NOT NULL,
  pushes       smallint NOT NULL,
  PRIMARY KEY (day, app_id, installation)
) WITH (fillfactor = 50);

-- Down Migration

DROP TABLE device_day;
