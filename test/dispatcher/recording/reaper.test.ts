import { expect, test } from 'vitest';
import { closeSettledPushes } from '../../../dispatcher/recording/recorder.ts';
import { areDatabasesSharded } from '../../support/database.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changePush, readPush } from '../../support/tables.ts';

const service = useTestService();

test.skipIf(areDatabasesSharded())(
  'a push that cannot be closed does not keep the reaper from closing others',
  async () => {
    const { deps } = await service.dispatch();
    const { db } = service;
    const app = await service.api.createApp();
    const pushes = [await beginPush(service, app), await beginPush(service, app)];
    for (const push of pushes) await service.untilDone(app, push);
    const [bad = '', good = ''] = pushes;
    await db.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON notification FOR EACH ROW
      WHEN (NEW.object_id = '${bad}' AND NEW.state = 'done') EXECUTE FUNCTION refuse()`);
    await changePush(db, app, { state: 'sending' });
    await closeSettledPushes(deps).catch(() => undefined);
    expect(await readPush(db, app, good)).toMatchObject({ state: 'done' });
    expect(await readPush(db, app, bad)).toMatchObject({ state: 'sending' });
  },
);
