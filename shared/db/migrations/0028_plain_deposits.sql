-- Up Migration

-- A deposit is written once and read when its batch is repeated: its compression took more processor time than all else of
-- storing a push for connected devices, for half of eight bytes per recipient.
ALTER TABLE channel_deposit ALTER COLUMN installations SET STORAGE EXTERNAL;

-- Down Migration

ALTER TABLE channel_deposit ALTER COLUMN installations SET STORAGE EXTENDED;
