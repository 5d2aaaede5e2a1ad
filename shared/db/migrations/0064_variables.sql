-- Up Migration

-- Recipients of a push with variables by variable, as far as it is planned: all, and those who get the default; null for other pushes.
ALTER TABLE notification ADD COLUMN variables jsonb;

-- Down Migration

ALTER TABLE notification DROP COLUMN variables;
