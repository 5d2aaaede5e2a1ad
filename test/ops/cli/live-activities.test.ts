import { beforeAll, describe, expect, test } from 'vitest';
import { query } from '../../../shared/db/query.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';

describe('carillon live-activity', () => {
  const service = useTestService();
  let app: App;
  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    await service.addIosInstallations(app, 2);
    const [objectId] = await query(service.db).column<string>(
      'SELECT object_id FROM installation WHERE app_id = $1',
      [app.appId],
    );
    for (const name of [{ attributesType: 'OrderAttributes' }, { activityId: 'order-1' }])
      await service.api.request('POST', '/1.1/liveActivities/tokens', {
        app,
        body: { objectId, token: 'abcdef', ...name },
      });
    await service.dispatch();
  });

  const run = async (...args: string[]) => {
    const result = await carillon(['live-activity', ...args, '--app', app.appId, '--json'], {
      env: {
        PUBLIC_URL: service.api.url,
        CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken,
      },
    });
    expect(result.code, result.stdout + result.stderr).toBe(0);
    return result.json();
  };
  const start = [
    ...['start', 'OrderAttributes', '--attributes', '{"id":1}', '--state', '{"stage":1}'],
    ...['--alert', '{"title":"On its way"}'],
  ];

  test('starts, updates and ends, after a dry run', async () => {
    expect(await run(...start, '--dry-run')).toMatchObject({ withToken: 1, withoutToken: 1 });
    for (const args of [
      start,
      ['update', 'order-1', '--state', '{"stage":2}', '--priority', '10'],
      ['end', 'order-1', '--state', '{"stage":3}', '--dismiss', '2030-01-01T00:00:00Z'],
    ]) {
      const { objectId } = await run(...args);
      expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 1 });
    }
    const sent = service.apns.requests.map(({ body }) => JSON.parse(String(body)).aps.event);
    expect(sent).toEqual(['start', 'update', 'end']);
  });

  test('manages channels and sends broadcasts', async () => {
    expect(await run('channel-create', '--storage', 'none', '--dry-run')).toMatchObject({
      dryRun: true,
    });
    const { channel } = await run('channel-create', '--storage', 'none');
    expect((await run('channels')).results).toMatchObject([{ channel, storage: 'none' }]);
    expect(await run('channel', channel)).toMatchObject({ channel, storage: 'none' });
    const { objectId } = await run(
      ...['broadcast', channel, '--event', 'update', '--state', '{}', '--priority', '1'],
    );
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 1 });
    expect(await run('channel-delete', channel, '--dry-run')).toMatchObject({ dryRun: true });
    expect(await run('channel-delete', channel)).toEqual({});
    expect((await run('channels')).results).toEqual([]);
  });
});
