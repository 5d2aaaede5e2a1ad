-- Up Migration

-- What people save for sending, by kind: a push template (body), an audience (where), a test device (installation).
CREATE TABLE saved_item (
  app_id      text NOT NULL,
  kind        text NOT NULL CHECK (kind IN ('push-template', 'audience', 'test-device')),
  name        text NOT NULL,
  content     jsonb NOT NULL,
  updated_by  text NOT NULL,
  updated_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, kind, name)
);

-- Down Migration

DROP TABLE saved_item;
