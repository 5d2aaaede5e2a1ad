-- Up Migration

-- The message of a push for up to 1,000 connected devices, in one row: most of them acknowledge it within a second, and one
-- inbox row for each would be written and deleted for nothing. Devices that have not acknowledged after a while get inbox
-- rows. `id` is drawn from the sequence of channel_inbox, so that both sort together.
CREATE TABLE channel_group (
  app_id      text NOT NULL,
  id          bigint NOT NULL,
  push_id     bigint NOT NULL,
  message_id  bigint NOT NULL,
  lowest      bigint NOT NULL,
  highest     bigint NOT NULL,
  -- Installations that have not acknowledged, sorted.
  pending     bigint[] NOT NULL,
  expires_at  timestamptz(3) NOT NULL,
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  PRIMARY KEY (app_id, id)
) WITH (fillfactor = 50);
-- Two calls that store the same batch at the same time: the second fails and is repeated.
CREATE UNIQUE INDEX channel_group_batch ON channel_group (app_id, push_id, lowest);
-- Rows live for a second: their compression would take more processor time than all else.
ALTER TABLE channel_group ALTER COLUMN pending SET STORAGE EXTERNAL;

-- The place of a message among those of its device, where it is not the id of the row: its group had that id.
ALTER TABLE channel_inbox ADD COLUMN position bigint;

-- Whether the process reads groups; those of the version before do not.
ALTER TABLE channel_node ADD COLUMN takes_groups boolean NOT NULL DEFAULT false;

-- Down Migration

INSERT INTO channel_inbox (app_id, installation, push_id, message_id)
SELECT app_id, unnest(pending), push_id, message_id FROM channel_group ORDER BY id
ON CONFLICT (app_id, installation, push_id) DO NOTHING;
DROP TABLE channel_group;
ALTER TABLE channel_inbox DROP COLUMN position;
ALTER TABLE channel_node DROP COLUMN takes_groups;
