-- Up Migration

-- objectId of the push to the recipients that this one did not reach; NULL without one.
ALTER TABLE notification ADD COLUMN resent_as text;

-- Down Migration

ALTER TABLE notification DROP COLUMN resent_as;
