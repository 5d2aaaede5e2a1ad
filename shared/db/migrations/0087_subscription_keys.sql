-- Up Migration

-- Keys of a Web Push subscription: p256dh, auth and the id of the VAPID key, separated by dots. The
-- endpoint is the registration id.
ALTER TABLE installation ADD COLUMN subscription_keys text;

-- Down Migration

ALTER TABLE installation DROP COLUMN subscription_keys;
