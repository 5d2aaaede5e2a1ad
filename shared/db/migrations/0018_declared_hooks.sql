-- Up Migration

-- The hooks that the function host of an app last declared, for processes that start while it is away.
CREATE TABLE declared_hooks (
  app_id      text NOT NULL REFERENCES app ON DELETE CASCADE,
  stage       text NOT NULL,
  url         text NOT NULL,
  names       text[] NOT NULL,
  declared_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, stage)
);

-- Down Migration

DROP TABLE declared_hooks;
