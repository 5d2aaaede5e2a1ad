/**
 * Tests which installations count as one device
 * (docs/reference/protocol/installations.md#registration).
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices, type Device, readDevices } from '../../support/tables.ts';

const service = useTestService();
let vendors: AllVendors;
beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(() => vendors.close());

const path = '/1.1/installations';
const post = (app: App, body: object) => service.api.request('POST', path, { app, body });
const put = (app: App, id: string, body: object) =>
  service.api.request('PUT', `${path}/${id}`, { app, body });
const get = async (app: App, id: string) =>
  (await service.api.request('GET', `${path}/${id}`, { app })).body;
const admin = async (url: string) =>
  (await service.api.request('GET', `/console/api${url}`, { admin: true })).body;
async function push(app: App, body: object): Promise<Record<string, unknown>> {
  if (!('device_ids' in body)) return service.untilDone(app, await beginPush(service, app, body));
  const listed = { data: { alert: 'Hello' }, ...body };
  const { body: begun } = await service.api.request('POST', '/1.1/push/devices', {
    app,
    master: true,
    body: listed,
  });
  return service.untilDone(app, begun.objectId);
}

/** Returns several spellings of a new token. */
function newToken() {
  const lower = `ab${randomBytes(31).toString('hex')}`;
  const mixed = [...lower].map((digit, i) => (i % 2 === 0 ? digit.toUpperCase() : digit)).join('');
  return { lower, upper: lower.toUpperCase(), mixed };
}

/** Body that is too large for a group of saves. */
const large = { note: 'x'.repeat(3000) };

async function appWithApns(): Promise<App> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  return app;
}

const rowsOf = (app: App): Promise<Device[]> => readDevices(service.db, app);

describe('an APNs token in other letter case', () => {
  test.each([
    ['in a group of saves', {}],
    ['by itself', large],
  ])(
    'is the same device when it registers %s, and keeps the spelling of the last save',
    async (_, more) => {
      const app = await appWithApns();
      const { lower, upper, mixed } = newToken();
      const { objectId } = (await post(app, { deviceType: 'ios', deviceToken: upper, ...more }))
        .body;
      for (const deviceToken of [lower, mixed, upper]) {
        const saved = await post(app, { deviceType: 'ios', deviceToken, ...more });
        expect([saved.status, saved.body.objectId]).toEqual([200, objectId]);
        expect(await get(app, objectId)).toMatchObject({ deviceToken });
      }
      expect(await rowsOf(app)).toHaveLength(1);
    },
  );

  test('is one device, however many registrations are concurrent', async () => {
    const app = await appWithApns();
    const { lower, upper, mixed } = newToken();
    const replies = await Promise.all(
      Array.from({ length: 30 }, (_, i) => {
        const deviceToken = [lower, upper, mixed][i % 3];
        return post(app, { deviceType: 'ios', deviceToken, ...(i % 2 === 0 ? large : {}) });
      }),
    );
    expect(new Set(replies.map(({ body }) => body.objectId)).size).toBe(1);
    expect(await rowsOf(app)).toHaveLength(1);
  });

  test('is taken for another installation, but may be respelled by its own', async () => {
    const app = await appWithApns();
    const { lower, upper } = newToken();
    const first = await post(app, { deviceType: 'ios', deviceToken: lower, installationId: 'one' });
    const other = await post(app, {
      deviceType: 'ios',
      deviceToken: newToken().lower,
      installationId: 'two',
    });
    const taking = { deviceType: 'ios', deviceToken: upper, installationId: 'two' };
    for (const more of [{}, large])
      expect((await post(app, { ...taking, ...more })).body).toMatchObject({ code: 137 });
    const changed = await put(app, other.body.objectId, { deviceToken: upper });
    expect(changed.body).toMatchObject({ code: 137 });
    expect((await put(app, first.body.objectId, { deviceToken: upper })).status).toBe(200);
    expect(await get(app, first.body.objectId)).toMatchObject({ deviceToken: upper });
  });

  test('is found by every condition, list, search and trace', async () => {
    const app = await appWithApns();
    const tokens = [newToken(), newToken(), newToken()];
    const ids: string[] = [];
    for (const [i, token] of tokens.entries())
      ids.push(
        (await post(app, { deviceType: 'ios', deviceToken: i === 0 ? token.lower : token.upper }))
          .body.objectId,
      );
    const [one, two] = tokens;
    const found = async (where: object) => {
      const query = `?where=${encodeURIComponent(JSON.stringify(where))}&order=createdAt`;
      const reply = await service.api.request('GET', path + query, { app, master: true });
      return reply.body.results.map(({ objectId }: JsonObject) => ids.indexOf(String(objectId)));
    };
    for (const deviceToken of [one?.lower, one?.upper, one?.mixed]) {
      expect(await found({ deviceToken })).toEqual([0]);
      expect(await found({ deviceToken: { $in: [deviceToken, 'x'] } })).toEqual([0]);
      expect(await found({ deviceToken: { $all: [deviceToken] } })).toEqual([0]);
      expect((await found({ deviceToken: { $ne: deviceToken } })).sort()).toEqual([1, 2]);
      expect((await found({ deviceToken: { $nin: [deviceToken, two?.mixed] } })).sort()).toEqual([
        2,
      ]);
      expect(await found({ $or: [{ deviceToken }, { deviceToken: 'x' }] })).toEqual([0]);
      // A pattern matches the spelling, as for vendors.
      expect(await found({ deviceToken: { $regex: `^${two?.upper}$` } })).toEqual([1]);
    }
    for (const deviceToken of [two?.lower, two?.upper, two?.mixed]) {
      const listed = await admin(`/apps/${app.appId}/installations?q=${deviceToken}`);
      expect(listed.results.map(({ objectId }: JsonObject) => objectId)).toEqual([ids[1]]);
      const hits = await admin(`/search?q=${deviceToken}&app=${app.appId}`);
      expect(hits.results.map(({ id }: JsonObject) => id)).toEqual([ids[1]]);
    }
    const { objectId } = await push(app, { where: { deviceToken: two?.mixed } });
    for (const deviceToken of [two?.lower, two?.upper, two?.mixed])
      expect(
        await admin(`/apps/${app.appId}/notifications/${objectId}/devices/${deviceToken}`),
      ).toMatchObject({
        outcome: 'sent',
      });
  });

  test('gets one message, and is sent to in lower case, whatever names it', async () => {
    const app = await appWithApns();
    const { lower, upper, mixed } = newToken();
    await post(app, { deviceType: 'ios', deviceToken: lower, apnsTopic: 'com.example.app' });
    await post(app, { deviceType: 'ios', deviceToken: upper, apnsTopic: 'com.example.app' });
    const bodies = [
      {},
      { where: { deviceToken: lower } },
      { where: { deviceToken: mixed } },
      { where: { deviceToken: { $in: [upper, lower] } } },
      { device_ids: [upper], device_type: 'ios' },
      { device_ids: [upper, lower, mixed], device_type: 'ios' },
    ];
    for (const [i, body] of bodies.entries()) {
      expect([i, await push(app, body)]).toEqual([
        i,
        expect.objectContaining({ devices: 1, successes: 1 }),
      ]);
      expect(service.apns.seen(lower)).toBe(i + 1);
      expect(service.apns.seen(upper)).toBe(0);
    }
  });

  test.each([
    ['a registration id', { vendor: 'HMS' }, 'registrationId'],
    ['an installation id', {}, 'installationId'],
  ])('differs from %s, which has only one spelling', async (_, more, member) => {
    const app = await service.api.createApp();
    for (const [i, id] of ['abcd', 'ABCD'].entries()) {
      const device = {
        deviceType: 'android',
        installationId: `device-${i}`,
        ...more,
        [member]: id,
      };
      expect((await post(app, device)).status).toBe(201);
    }
    const rows = await rowsOf(app);
    expect(rows).toHaveLength(2);
    if (member === 'registrationId')
      expect(rows.map((row) => row.registrationId)).toEqual(['abcd', 'ABCD']);
  });
});

describe('a token that an older version stored unchanged', () => {
  async function storeAsSent(app: App, token: string): Promise<void> {
    const [stored = ''] = await service.addIosInstallations(app, 1);
    await changeDevices(service.db, app, { deviceToken: token }, [stored]);
  }

  test('is found by its spelling, and sent to in lower case', async () => {
    const app = await appWithApns();
    const { lower, upper } = newToken();
    await storeAsSent(app, upper);
    const [row] = await rowsOf(app);
    for (const body of [
      { where: { deviceToken: upper } },
      { where: { deviceToken: { $in: [upper] } } },
      { device_ids: [upper], device_type: 'ios' },
    ])
      expect(await push(app, body)).toMatchObject({ devices: 1, successes: 1 });
    expect(service.apns.seen(lower)).toBe(3);
    for (const more of [large, {}]) {
      const saved = await post(app, { deviceType: 'ios', deviceToken: upper, ...more });
      expect([saved.status, saved.body.objectId]).toEqual([200, row?.objectId]);
    }
    // The save has rewritten the token.
    expect((await post(app, { deviceType: 'ios', deviceToken: lower })).body.objectId).toBe(
      row?.objectId,
    );
  });

  test('is found in a group of saves', async () => {
    const app = await appWithApns();
    const { upper } = newToken();
    await storeAsSent(app, upper);
    const saved = await post(app, { deviceType: 'ios', deviceToken: upper, installationId: 'new' });
    expect([saved.status, saved.body.objectId]).toEqual([200, (await rowsOf(app))[0]?.objectId]);
  });
});

describe('a vendor’s registration id under a new installation', () => {
  let serial = 0;
  const newId = () => `registration-${++serial}`;
  const device = (installationId: string, registrationId: string, more: object = {}) => ({
    deviceType: 'android',
    vendor: 'HMS',
    installationId,
    registrationId,
    ...more,
  });
  const registrationOf = async (app: App, objectId: string) =>
    (await get(app, objectId)).registrationId;

  test.each([
    ['in a group of saves', {}],
    ['by itself', large],
  ])(
    'that registers %s is taken from the older installation, which keeps its other members',
    async (_, more) => {
      const app = await service.api.createApp();
      const id = newId();
      const older = (await post(app, device('old', id, { channels: ['news'] }))).body.objectId;
      const newer = (await post(app, device('new', id, more))).body.objectId;
      expect(newer).not.toBe(older);
      expect(await registrationOf(app, older)).toBeUndefined();
      expect(await get(app, older)).toMatchObject({ installationId: 'old', channels: ['news'] });
      expect(await registrationOf(app, newer)).toBe(id);
      // Registering once more changes nothing. The older installation can take it back.
      await post(app, device('new', id));
      expect(await registrationOf(app, newer)).toBe(id);
      await post(app, device('old', id, more));
      expect(await registrationOf(app, older)).toBe(id);
      expect(await registrationOf(app, newer)).toBeUndefined();
    },
  );

  test('is taken by a change of an installation, too', async () => {
    const app = await service.api.createApp();
    const id = newId();
    const older = (await post(app, device('old', id))).body.objectId;
    const newer = (await post(app, { deviceType: 'android', installationId: 'new' })).body.objectId;
    expect((await put(app, newer, { vendor: 'HMS', registrationId: id })).status).toBe(200);
    expect(await registrationOf(app, older)).toBeUndefined();
    const batched = { method: 'PUT', path: `${path}/${older}`, body: { registrationId: id } };
    await service.api.request('POST', '/1.1/batch', { app, body: { requests: [batched] } });
    expect(await registrationOf(app, older)).toBe(id);
    expect(await registrationOf(app, newer)).toBeUndefined();
  });

  test('is scoped to its vendor and app: other installations keep theirs', async () => {
    const [app, other] = [await service.api.createApp(), await service.api.createApp()];
    const id = newId();
    const kept = [
      [app, (await post(app, device('mi', id, { vendor: 'mi' }))).body.objectId],
      [app, (await post(app, device('none', id, { vendor: undefined }))).body.objectId],
      [other, (await post(other, device('old', id))).body.objectId],
    ] as const;
    await post(app, device('new', id));
    for (const [owner, objectId] of kept) expect(await registrationOf(owner, objectId)).toBe(id);
  });

  test('for HarmonyOS needs no vendor, and all spellings of a vendor are equal', async () => {
    const app = await service.api.createApp();
    const id = newId();
    const objectIds: string[] = [];
    for (const [i, more] of [
      { deviceType: 'harmony', vendor: undefined },
      { vendor: 'hms' },
      { deviceType: 'ohos', vendor: 'HMS' },
      { deviceType: 'openharmony', vendor: undefined },
    ].entries())
      objectIds.push((await post(app, device(`device-${i}`, id, more))).body.objectId);
    const owners = (await rowsOf(app)).filter((row) => row.registrationId === id);
    expect(owners.map((row) => row.objectId)).toEqual(objectIds.slice(-1));
  });

  test('gets one message', async () => {
    const app = await vendors.app('vendor_a');
    const id = newId();
    await post(app, device('old', id));
    await post(app, device('new', id));
    vendors.gateways.huawei.forget();
    expect(await push(app, {})).toMatchObject({ hmsSuccesses: 1 });
    expect(vendors.gateways.huawei.requests.flatMap(({ tokens }) => tokens)).toEqual([id]);
  });

  test('has one owner in the end if several installations register concurrently', async () => {
    const app = await service.api.createApp();
    const id = newId();
    await Promise.all(Array.from({ length: 20 }, (_, i) => post(app, device(`device-${i}`, id))));
    // Installations that were saved at exactly the same time may all have the id until one of them
    // registers again.
    const { objectId } = (await post(app, device('device-7', id))).body;
    const owners = (await rowsOf(app)).filter((row) => row.registrationId !== null);
    expect(owners.map((row) => row.objectId)).toEqual([objectId]);
  });
});
