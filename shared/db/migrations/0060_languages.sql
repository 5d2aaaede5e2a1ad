-- Up Migration

-- Translation that the recipients of a batch get; null for `data` as it is.
ALTER TABLE push_batch ADD COLUMN language text;

-- Recipients of a push with translations by language, as far as it is planned; null for other pushes.
ALTER TABLE notification ADD COLUMN languages jsonb;

-- Down Migration

ALTER TABLE notification DROP COLUMN languages;
ALTER TABLE push_batch DROP COLUMN language;
