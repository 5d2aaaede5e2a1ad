import { expect, test } from 'vitest';
import { query } from '../../../../shared/db/query.ts';
import { markPushResumed } from '../../../../shared/db/tables/push-control.ts';
import { findRestoration, pauseRestoredWork } from '../../../../shared/db/tables/restorations.ts';
import { openTestDatabase } from '../../../support/database.ts';

const { db } = await openTestDatabase();

test('a push that an earlier restore held is held again by the next restore', async () => {
  const appId = 'restored twice';
  const id = await query(db).number(
    `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod, push_time,
       expires_at)
     VALUES ($1, 'a', 'a', 'sending', '{}', 'prod', now(), now() + interval '1 day')
     RETURNING id`,
    [appId],
  );
  const restore = () => db.transaction((tx) => pauseRestoredWork(tx, new Date(0)));
  expect(await restore()).toMatchObject({ pushes: 1 });
  expect(await markPushResumed(db, appId, id)).toBe(true);
  expect(await restore()).toMatchObject({ pushes: 1 });
  expect(await findRestoration(db)).toMatchObject({ paused: 1 });
});
