-- Up Migration

-- Second version of the credentials of a profile, tried before it replaces the current one: the last rotation of each
-- profile. `candidate` and `previous` are encrypted as `push_profile.credentials` are.
CREATE TABLE profile_rotation (
  app_id        text NOT NULL,
  connector     text NOT NULL,
  name          text NOT NULL,
  state         text NOT NULL CHECK (state IN ('staged', 'checked', 'canary', 'promoted', 'rolled_back')),
  candidate     bytea,
  -- Credentials that a promotion replaced, for a rollback.
  previous      bytea,
  staged_at     timestamptz(3) NOT NULL,
  changed_at    timestamptz(3) NOT NULL,
  -- Why the check or the canary failed.
  reason        text,
  -- What the gateway or the check said, for the operator.
  detail        text,
  -- Batches of the profile since the canary began, and those that were sent with the candidate.
  batches_seen  bigint NOT NULL DEFAULT 0,
  batches       bigint NOT NULL DEFAULT 0,
  -- Recipients of those batches: sent to with the candidate, accepted, refused for authentication, and not accepted although
  -- the current version was accepted right after.
  asked         bigint NOT NULL DEFAULT 0,
  accepted      bigint NOT NULL DEFAULT 0,
  refused       bigint NOT NULL DEFAULT 0,
  worse         bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (app_id, connector, name),
  FOREIGN KEY (app_id, connector, name) REFERENCES push_profile ON DELETE CASCADE
);
CREATE INDEX profile_rotation_changed_at ON profile_rotation (changed_at);

-- Down Migration

DROP TABLE profile_rotation;
