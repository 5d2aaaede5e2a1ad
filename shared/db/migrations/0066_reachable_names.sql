-- Up Migration

-- The path of an item contains its name. Names that a path cannot hold get full-width characters in place of slashes, dots and
-- `%`, as `reachableName` (shared/domain/path.ts) gives them. If the new name may be taken, a digest of the old one follows it.
-- Accepted: an app has at most 450 saved items and a few texts, and hardly any row has such a name.
UPDATE saved_item AS item
   SET name = CASE WHEN renamed.name ~ '[／＼％．]' OR EXISTS (
                     SELECT 1 FROM saved_item AS other WHERE other.app_id = item.app_id AND other.kind = item.kind AND other.name = renamed.plain)
                   THEN left(renamed.plain, 91) || ' ' || left(md5(renamed.name), 8)
                   ELSE renamed.plain END
  FROM (SELECT app_id, kind, name,
               CASE name WHEN '.' THEN '．' WHEN '..' THEN '．．'
               ELSE regexp_replace(translate(name, '/\', '／＼'), '%(?=[0-9A-Fa-f]{2})', '％', 'g') END AS plain
          FROM saved_item
         WHERE name IN ('.', '..') OR name ~ '[/\\]' OR name ~ '%[0-9A-Fa-f]{2}') AS renamed
 WHERE item.app_id = renamed.app_id AND item.kind = renamed.kind AND item.name = renamed.name;

UPDATE sms_template AS item
   SET name = CASE WHEN renamed.name ~ '[／＼％．]' OR EXISTS (
                     SELECT 1 FROM sms_template AS other WHERE other.app_id = item.app_id AND other.name = renamed.plain)
                   THEN left(renamed.plain, 91) || ' ' || left(md5(renamed.name), 8)
                   ELSE renamed.plain END
  FROM (SELECT app_id, name,
               CASE name WHEN '.' THEN '．' WHEN '..' THEN '．．'
               ELSE regexp_replace(translate(name, '/\', '／＼'), '%(?=[0-9A-Fa-f]{2})', '％', 'g') END AS plain
          FROM sms_template
         WHERE name IN ('.', '..') OR name ~ '[/\\]' OR name ~ '%[0-9A-Fa-f]{2}') AS renamed
 WHERE item.app_id = renamed.app_id AND item.name = renamed.name;

UPDATE sms_signature AS item
   SET name = CASE WHEN renamed.name ~ '[／＼％．]' OR EXISTS (
                     SELECT 1 FROM sms_signature AS other WHERE other.app_id = item.app_id AND other.name = renamed.plain)
                   THEN left(renamed.plain, 91) || ' ' || left(md5(renamed.name), 8)
                   ELSE renamed.plain END
  FROM (SELECT app_id, name,
               CASE name WHEN '.' THEN '．' WHEN '..' THEN '．．'
               ELSE regexp_replace(translate(name, '/\', '／＼'), '%(?=[0-9A-Fa-f]{2})', '％', 'g') END AS plain
          FROM sms_signature
         WHERE name IN ('.', '..') OR name ~ '[/\\]' OR name ~ '%[0-9A-Fa-f]{2}') AS renamed
 WHERE item.app_id = renamed.app_id AND item.name = renamed.name;

-- Down Migration

-- The new names stay: the version before reaches items by them too.
