-- Up Migration

-- A push by an app's own keys needs an owner, or two operators of different names: the first of them is noted here.
ALTER TABLE push_approval ADD COLUMN first_by text, ADD COLUMN first_at timestamptz;

-- Down Migration

ALTER TABLE push_approval DROP COLUMN first_by, DROP COLUMN first_at;
