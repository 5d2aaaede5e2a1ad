-- Up Migration

-- One row per role of an app (protocol/roles.md#role-fields). `acl` says who may see and change the role itself, its members included.
-- `name` is what ACLs call it by (`role:<name>`); it never changes.
CREATE TABLE role (
  app_id     text NOT NULL REFERENCES app ON DELETE CASCADE,
  id         bigint GENERATED ALWAYS AS IDENTITY,
  object_id  text NOT NULL,
  name       text NOT NULL,
  acl        jsonb NOT NULL,
  fields     jsonb NOT NULL DEFAULT '{}',
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  updated_at timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
);
CREATE UNIQUE INDEX role_object_id ON role (app_id, object_id);
CREATE UNIQUE INDEX role_name ON role (app_id, name);

-- The relation `users` of a role. The second index finds the roles of a user.
CREATE TABLE role_user (
  app_id  text NOT NULL,
  role_id bigint NOT NULL,
  user_id bigint NOT NULL,
  PRIMARY KEY (app_id, role_id, user_id),
  FOREIGN KEY (app_id, role_id) REFERENCES role (app_id, id) ON DELETE CASCADE,
  FOREIGN KEY (app_id, user_id) REFERENCES app_user (app_id, id) ON DELETE CASCADE
);
CREATE INDEX role_user_user ON role_user (app_id, user_id);

-- The relation `roles` of a role: a user that has the child role has the role too. It may hold cycles.
CREATE TABLE role_role (
  app_id   text NOT NULL,
  role_id  bigint NOT NULL,
  child_id bigint NOT NULL,
  PRIMARY KEY (app_id, role_id, child_id),
  FOREIGN KEY (app_id, role_id) REFERENCES role (app_id, id) ON DELETE CASCADE,
  FOREIGN KEY (app_id, child_id) REFERENCES role (app_id, id) ON DELETE CASCADE
);
CREATE INDEX role_role_child ON role_role (app_id, child_id);

-- Down Migration

DROP TABLE role_role, role_user, role;
