-- Up Migration

-- The balance of 200 that every app had is no longer the default: without the option there is no
-- limit. Messages were charged to the option, so apps have it that never set it. The audit tells
-- them apart, for apps that are younger than its oldest entry. All other apps keep their balance.
UPDATE app SET options = options - 'smsBalance'
 WHERE options ? 'smsBalance'
   AND created_at > (SELECT min(at) FROM audit)
   AND NOT EXISTS (SELECT FROM audit
                    WHERE audit.app_id = app.app_id AND audit.after::text LIKE '%"smsBalance"%');

-- Down Migration

SELECT 1;
