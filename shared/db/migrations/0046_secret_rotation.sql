-- Up Migration

-- Rotations of CARILLON_SECRET, by the id of the first key that values are encrypted under. A dispatcher with this first key
-- works on one that was requested and has not finished; its position and the rows of a page commit together.
CREATE TABLE secret_rotation (
  key_id       text PRIMARY KEY,
  requested_at timestamptz(3) NOT NULL,
  finished_at  timestamptz(3),
  -- Passes over all values so far; 0 before the first.
  pass         integer NOT NULL DEFAULT 0,
  -- Next place to read: the app, the index of the place, and the row's key after which to go on.
  app_id       text,
  place        integer NOT NULL DEFAULT 0,
  position     jsonb,
  -- Values to encrypt at the beginning, values encrypted so far, and values of this pass that no key decrypts, by place.
  expected     bigint NOT NULL DEFAULT 0,
  changed      bigint NOT NULL DEFAULT 0,
  unreadable   jsonb NOT NULL DEFAULT '{}',
  -- Values by place and key, when they were counted last.
  counts       jsonb,
  counted_at   timestamptz(3)
);

-- Down Migration

DROP TABLE secret_rotation;
