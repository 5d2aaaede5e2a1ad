import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../../shared/clock.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { movableClock } from '../../../support/gateways/apns.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { callerOf } from '../callers.ts';

const clock = movableClock(systemClock.now());
const api = useTestApi({ clock });
let other: TestApi;

beforeAll(async () => {
  other = await startTestApi({ databaseUrl: api.databaseUrl, clock });
});
afterAll(() => other.close());

const rotate = (appId: string, key: string, body?: object) =>
  api.request('POST', `/console/api/apps/${appId}/keys/${key}/rotate`, {
    admin: true,
    ...(body ? { body } : {}),
  });

describe('a key of an app', () => {
  test('can be read alone by owners; options are read and changed without any key', async () => {
    const app = await api.createApp();
    const path = `/apps/${app.appId}`;
    const owner = await callerOf(api, 'owner');
    for (const key of ['appKey', 'masterKey', 'hookKey'] as const)
      expect(await owner('GET', `${path}/keys/${key}`)).toMatchObject({
        status: 200,
        body: { key, value: app[key] },
      });
    expect((await owner('GET', `${path}/keys/secret`)).body).toMatchObject({ code: 404 });
    expect((await owner('GET', '/apps/nowhere-at-all/keys/appKey')).status).toBe(404);
    const operator = await callerOf(api, 'operator');
    expect((await operator('GET', `${path}/keys/appKey`)).status).toBe(403);
    const changed = await owner('PATCH', `${path}?view=options`, { body: { name: 'Shop' } });
    for (const { body } of [await owner('GET', `${path}?view=options`), changed])
      expect(Object.keys(body)).toEqual(['appId', 'name', 'edition', 'plan', 'options']);
    expect((await owner('GET', path)).body).toMatchObject({ masterKey: app.masterKey });
    expect((await owner('GET', `${path}?view=all`)).body.error).toContain('view');
  });

  test('is replaced at once on every process, and the old key ends at its time', async () => {
    const app = await api.createApp();
    const listWith = (at: Pick<TestApi, 'request'>, masterKey: string) =>
      at.request('GET', '/1.1/installations', { app: { ...app, masterKey }, master: true });
    // Both processes have cached the app.
    for (const at of [api, other]) expect((await listWith(at, app.masterKey)).status).toBe(200);
    const { body } = await rotate(app.appId, 'masterKey', { graceSeconds: 60 });
    expect(body).toEqual({
      key: 'masterKey',
      value: expect.stringMatching(/^[A-Za-z0-9]{24}$/),
      oldValidUntil: new Date(clock.now() + 60_000).toISOString(),
    });
    for (const at of [api, other])
      for (const key of [body.value, app.masterKey])
        expect((await listWith(at, key)).status).toBe(200);
    // A change of the options keeps the old key valid.
    const change = { admin: true, body: { options: { generalSms: false } } } as const;
    await api.request('PATCH', `/console/api/apps/${app.appId}`, change);
    expect((await listWith(api, app.masterKey)).status).toBe(200);
    clock.moveMs(61_000);
    for (const at of [api, other]) {
      expect((await listWith(at, app.masterKey)).status).toBe(401);
      expect((await listWith(at, body.value)).status).toBe(200);
    }
  });

  test('ends immediately without a grace time', async () => {
    const app = await api.createApp();
    const read = (appKey: string) =>
      other.request('POST', '/1.1/installations', {
        app: { ...app, appKey },
        body: { deviceType: 'android', installationId: 'one' },
      });
    expect((await read(app.appKey)).status).toBe(201);
    const { body } = await rotate(app.appId, 'appKey', { graceSeconds: 0 });
    expect(body.oldValidUntil).toBeNull();
    expect((await read(app.appKey)).status).toBe(401);
    expect((await read(body.value)).status).toBe(200);
  });

  test('is for owners; unknown keys, apps and times are refused', async () => {
    const app = await api.createApp();
    expect((await rotate(app.appId, 'otherKey')).status).toBe(404);
    expect((await rotate('nowhere', 'appKey')).status).toBe(404);
    for (const graceSeconds of [-1, 365 * 24 * 3600 + 1, '60'])
      expect((await rotate(app.appId, 'appKey', { graceSeconds })).status).toBe(400);
    const operator = await callerOf(api, 'operator');
    expect(
      (await operator('POST', `/apps/${app.appId}/keys/appKey/rotate`, { body: {} })).status,
    ).toBe(403);
  });
});
