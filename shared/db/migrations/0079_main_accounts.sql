-- Up Migration

-- A UnionID finds the user of its main account only. Before, the first user with an entry of the
-- UnionID was found. An entry that says nothing about it and finds its user today stays the main
-- account; an entry that says `false` ends to be it.
UPDATE app_user u
   SET auth_data = (
     SELECT jsonb_object_agg(e.key, CASE
              WHEN jsonb_typeof(e.value) = 'object' AND NOT e.value ? 'main_account' AND EXISTS (
                SELECT 1 FROM user_identity i
                 WHERE i.app_id = u.app_id AND i.user_id = u.id AND i.uid = e.value ->> 'unionid'
                   AND i.platform = '_' || (e.value ->> 'platform') || '_unionid')
              THEN e.value || '{"main_account": true}' ELSE e.value END)
       FROM jsonb_each(u.auth_data) AS e)
 WHERE u.auth_data IS NOT NULL AND u.auth_data <> '{}'
   AND (u.app_id, u.id) IN (
     SELECT app_id, user_id FROM user_identity WHERE platform LIKE '\_%\_unionid');

DELETE FROM user_identity i USING app_user u
 WHERE i.platform LIKE '\_%\_unionid' AND u.app_id = i.app_id AND u.id = i.user_id AND NOT EXISTS (
   SELECT 1 FROM jsonb_each(u.auth_data) AS e
    WHERE e.value ->> 'unionid' = i.uid AND e.value ->> 'main_account' = 'true'
      AND i.platform = '_' || (e.value ->> 'platform') || '_unionid');
