import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestResponse } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const path = '/1.1/installations';
const post = (body: unknown, query = ''): Promise<TestResponse> =>
  api.request('POST', path + query, { app, body });
const get = async (id: string) => (await api.request('GET', `${path}/${id}`, { app })).body;

let serial = 0;
/** Body of a new Android installation. */
function android(more: object = {}): object {
  serial += 1;
  return { deviceType: 'android', installationId: `id-${serial}`, ...more };
}
function ios(more: object = {}): object {
  serial += 1;
  return { deviceType: 'ios', deviceToken: `token-${serial}`, ...more };
}

const refusals: [string, unknown, number][] = [
  ['no JSON', '{', 107],
  ['an array', [], 107],
  ['a text', '"x"', 107],
  ['a missing device type', { installationId: 'x' }, 111],
  ['a device type of another type', { deviceType: 5, installationId: 'x' }, 111],
  ['an operator as device type', { deviceType: { $ne: 1 }, installationId: 'x' }, 111],
  ['an unknown device type', { deviceType: 'toaster', installationId: 'x' }, 111],
  ['ios without a token', { deviceType: 'ios' }, 114],
  ['an empty token', { deviceType: 'ios', deviceToken: '' }, 114],
  ['a token with a space', { deviceType: 'ios', deviceToken: 'a b' }, 114],
  ['a token that is not a text', { deviceType: 'ios', deviceToken: 5 }, 114],
  ['a token that is an operator', { deviceType: 'ios', deviceToken: { $regex: '.' } }, 114],
  ['a token over 200 characters', { deviceType: 'ios', deviceToken: 'x'.repeat(201) }, 114],
  ['android without an installation id', { deviceType: 'android' }, 111],
  [
    'an installation id that is not a text',
    { deviceType: 'android', installationId: { a: 1 } },
    111,
  ],
  ['an installation id with NUL', { deviceType: 'android', installationId: 'a\u0000' }, 111],
  ['web without any id', { deviceType: 'web' }, 111],
  ['a channel with a space', android({ channels: ['a b'] }), 112],
  ['a channel that is not a text', android({ channels: [1] }), 112],
  ['channels that are not an array', android({ channels: 'news' }), 112],
  ['valid that is not a boolean', android({ valid: 'yes' }), 111],
  ['a badge with a fraction', android({ badge: 1.5 }), 111],
  ['a badge beyond 32 bits', android({ badge: 2 ** 31 }), 111],
  ['a malformed device profile', android({ deviceProfile: '1x' }), 111],
  ['a vendor that is not a text', android({ vendor: [] }), 111],
  ['a topic that is not a text', android({ apnsTopic: 1 }), 111],
  ['a field name with a dash', android({ 'a-b': 1 }), 105],
  ['a field name with a quote', android({ "a'b": 1 }), 105],
  ['a field name that begins with $', android({ $a: 1 }), 105],
  ['an inner name with a dot', android({ a: { 'b.c': 1 } }), 121],
  ['an inner name with $', android({ a: { $b: 1 } }), 121],
  ['a text with NUL', android({ a: 'x\u0000' }), 111],
  ['a lone surrogate', '{"deviceType":"android","installationId":"s","a":"\\ud800"}', 111],
  ['a number beyond a double', '{"deviceType":"android","installationId":"s","a":1e999}', 111],
  [
    'deep nesting',
    `{"deviceType":"android","installationId":"s","a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
    107,
  ],
  ['a malformed pointer', android({ user: { __type: 'Pointer', className: '_User' } }), 106],
  ['a malformed date', android({ since: { __type: 'Date', iso: 'yesterday' } }), 111],
  [
    'a geo point off the globe',
    android({ at: { __type: 'GeoPoint', latitude: 91, longitude: 0 } }),
    111,
  ],
  ['an unknown type', android({ a: { __type: 'Nothing' } }), 111],
  ['an unknown operation', android({ a: { __op: 'Explode' } }), 111],
  ['an oversize member', android({ a: 'x'.repeat(200_000) }), 116],
  [
    'too many members',
    android(Object.fromEntries(Array.from({ length: 301 }, (_, i) => [`f${i}`, 1]))),
    116,
  ],
  ['a creation time', android({ createdAt: '2020-01-01T00:00:00.000Z' }), 117],
  ['an invalid object id', android({ objectId: { $ne: 1 } }), 111],
  ['an object id that is a number', android({ objectId: 5 }), 111],
  ['a deleted device token', android({ deviceToken: { __op: 'Delete' } }), 114],
  ['a deleted device type', android({ deviceType: { __op: 'Delete' } }), 111],
  ['a deleted installation id', android({ installationId: { __op: 'Delete' } }), 111],
  ['a deleted member that is true or false', android({ valid: { __op: 'Delete' } }), 111],
];

describe('POST /1.1/installations', () => {
  test.each(refusals)('refuses %s', async (_name, body, code) => {
    const { status, body: reply } = await post(body);
    expect({ status, code: reply.code, error: typeof reply.error }).toEqual({
      status: 400,
      code,
      error: 'string',
    });
  });

  test('refuses wrong keys', async () => {
    const reply = await api.request('POST', path, {
      body: android(),
      headers: { 'X-LC-Id': app.appId },
    });
    expect(reply.status).toBe(401);
  });

  test('creates: 201, Location, objectId and createdAt', async () => {
    const { status, headers, body } = await post(ios({ channels: ['', 'news', '中文_=-'] }));
    expect(status).toBe(201);
    expect(Object.keys(body).sort()).toEqual(['createdAt', 'objectId']);
    expect(headers.get('location')).toBe(`http://carillon.test/1.1/installations/${body.objectId}`);
    expect(body.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('is read as it was stored, under its stored names', async () => {
    const wire = ios({
      apnsTopic: 'com.example',
      apnsTeamId: 'T1',
      vendor: 'HMS',
      a: { b: [1, null, 'é😀'] },
    });
    const neutral = ios({
      pgwTopic: 'com.example',
      pgwTeamId: 'T1',
      vendor: 'vendor_a',
      timeZone: 'UTC',
    });
    for (const body of [wire, neutral]) {
      const { objectId, createdAt } = (await post(body)).body;
      expect(await get(objectId)).toEqual({
        ...body,
        valid: true,
        objectId,
        createdAt,
        updatedAt: createdAt,
      });
    }
  });

  test('stores no private members, and stores harmless ones with dangerous names', async () => {
    const text = JSON.stringify(android({ constructor: 1, toString: 'x', a: { constructor: 2 } }));
    const more = `,"__proto__":{"polluted":1},"_x":1,"__internalId":"i","__children":[],"className":"_Installation"}`;
    const { body } = await post(text.slice(0, -1) + more);
    const stored = await get(body.objectId);
    expect(Object.keys(stored)).not.toContain('__internalId');
    expect(Object.keys(stored)).not.toContain('_x');
    expect(stored).toMatchObject({ toString: 'x', a: { constructor: 2 } });
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test('operations on a new installation start at 0 and an empty array', async () => {
    const ops = {
      badge: { __op: 'Increment', amount: 2 },
      channels: { __op: 'AddUnique', objects: ['a', 'a', 'b'] },
      gone: { __op: 'Delete' },
      'deep.n': { __op: 'Decrement', amount: 1 },
    };
    const { body } = await post(android(ops), '?fetchWhenSave=true');
    expect(body).toMatchObject({ badge: 2, channels: ['a', 'b'], deep: { n: -1 } });
    expect(body).not.toHaveProperty('gone');
  });

  test('returns the whole object with new or fetchWhenSave', async () => {
    for (const query of ['?new=true', '?fetchWhenSave=true', '?fetchWhenSave=1']) {
      const { status, body } = await post(android({ a: 1 }), query);
      expect(status).toBe(201);
      expect(body).toMatchObject({ deviceType: 'android', a: 1, valid: true });
    }
  });

  test('is served under /classes/_Installation too', async () => {
    const created = await api.request('POST', '/1.1/classes/_Installation', {
      app,
      body: android(),
    });
    expect(created.status).toBe(201);
    const read = await api.request('GET', `/1.1/classes/_Installation/${created.body.objectId}`, {
      app,
    });
    expect(read.body.objectId).toBe(created.body.objectId);
  });
});

describe('POST of a known device', () => {
  test('updates by installation id, also without the device type', async () => {
    const body = { deviceType: 'android', installationId: 'again', channels: ['a'] };
    const first = await post(body);
    const second = await post({
      installationId: 'again',
      channels: { __op: 'Add', objects: ['b'] },
    });
    expect(second.status).toBe(200);
    expect(second.body).toMatchObject({
      objectId: first.body.objectId,
      createdAt: first.body.createdAt,
    });
    expect(second.body.updatedAt >= first.body.createdAt).toBe(true);
    expect((await get(first.body.objectId)).channels).toEqual(['a', 'b']);
  });

  test('updates by device token, and adds the installation id', async () => {
    const first = await post({ deviceType: 'ios', deviceToken: 'tok-x' });
    const second = await post({ deviceType: 'ios', deviceToken: 'tok-x', installationId: 'late' });
    expect(second.body.objectId).toBe(first.body.objectId);
    expect((await get(first.body.objectId)).installationId).toBe('late');
  });

  test('updates by object id, and allows the device to renew its token', async () => {
    const { objectId } = (await post(ios())).body;
    const renewed = await post({
      objectId,
      deviceType: 'ios',
      deviceToken: 'renewed',
      __internalId: objectId,
    });
    expect(renewed).toMatchObject({ status: 200, body: { objectId } });
    expect((await get(objectId)).deviceToken).toBe('renewed');
  });

  test('creates an installation if its object id was deleted', async () => {
    const { status, body } = await post(android({ objectId: '0123456789abcdef01234567' }));
    expect(status).toBe(201);
    expect(body.objectId).not.toBe('0123456789abcdef01234567');
  });

  test("refuses another type or installation id (117) and another's token (137)", async () => {
    const mine = { deviceType: 'android', installationId: 'mine', deviceToken: 'mine-token' };
    const { objectId } = (await post(mine)).body;
    await post({ deviceType: 'android', installationId: 'other', deviceToken: 'other-token' });
    const codes = async (body: unknown) => (await post(body)).body.code;
    expect(await codes({ ...mine, deviceType: 'web' })).toBe(117);
    expect(await codes({ objectId, installationId: 'changed' })).toBe(117);
    expect(await codes({ ...mine, deviceToken: 'other-token' })).toBe(137);
    expect(await codes({ ...mine, installationId: 'third' })).toBe(137);
    expect(await codes({ deviceType: 'ios', deviceToken: 'mine-token' })).toBe(137);
  });

  test('in 50 concurrent calls creates one installation and loses no operation', async () => {
    const body = {
      deviceType: 'android',
      installationId: 'crowd',
      deviceToken: 'crowd-token',
      badge: { __op: 'Increment', amount: 1 },
    };
    const replies = await Promise.all(Array.from({ length: 50 }, () => post(body)));
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(49);
    expect(new Set(replies.map((reply) => reply.body.objectId)).size).toBe(1);
    expect((await get(replies[0]?.body.objectId)).badge).toBe(50);
  });

  test('with concurrent new installations gives a device token to exactly one', async () => {
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        post({ deviceType: 'android', installationId: `race-${i}`, deviceToken: 'wanted' }),
      ),
    );
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(replies.filter((reply) => reply.body.code === 137)).toHaveLength(19);
  });

  test('in another app creates another installation for the same ids', async () => {
    const other = await api.createApp();
    const body = { deviceType: 'android', installationId: 'shared' };
    const mine = await post(body);
    const theirs = await api.request('POST', path, { app: other, body });
    expect(theirs.status).toBe(201);
    const read = await api.request('GET', `${path}/${mine.body.objectId}`, { app: other });
    expect(read.body).toEqual({});
  });
});

describe('a HarmonyOS device', () => {
  const names = ['harmony', 'harmonyos', 'ohos', 'openharmony'];
  const find = async (where: object) =>
    (
      await api.request(
        'GET',
        `${path}?where=${encodeURIComponent(JSON.stringify(where))}&limit=100`,
        {
          app,
          master: true,
        },
      )
    ).body.results.map(({ deviceType }: { deviceType: string }) => deviceType);

  test('has four names for one type, and keeps the name that was stored', async () => {
    const group = `harmony-${Math.random()}`;
    for (const deviceType of names) {
      const { status, body } = await post(
        android({ deviceType, vendor: 'HMS', registrationId: deviceType, group }),
      );
      expect(status).toBe(201);
      expect(await get(body.objectId)).toMatchObject({ deviceType, vendor: 'HMS' });
    }
    await post(android({ group }));
    for (const deviceType of names) {
      expect((await find({ group, deviceType })).sort()).toEqual(names);
      expect((await find({ group, deviceType: { $in: ['web', deviceType] } })).sort()).toEqual(
        names,
      );
      expect(await find({ group, deviceType: { $ne: deviceType } })).toEqual(['android']);
      expect(await find({ group, deviceType: { $nin: [deviceType] } })).toEqual(['android']);
    }
    expect(await find({ group, deviceType: 'android' })).toEqual(['android']);
  });

  test('may use another name of its type later; another type is refused', async () => {
    const body = android({ deviceType: 'harmony', vendor: 'HMS', registrationId: 'r1' });
    const { body: created } = await post(body);
    const again = await post({ ...body, deviceType: 'ohos' });
    expect([again.status, again.body.objectId]).toEqual([200, created.objectId]);
    expect((await get(created.objectId)).deviceType).toBe('ohos');
    const put = (deviceType: string) =>
      api.request('PUT', `${path}/${created.objectId}`, { app, body: { deviceType } });
    expect((await put('openharmony')).status).toBe(200);
    expect((await put('android')).body.code).toBe(117);
  });

  test('has one entry in the list of types in errors and the description', async () => {
    const { body } = await post({ deviceType: 'HarmonyOS 5', installationId: 'x' });
    expect(body.error).toMatch(/harmony, harmonyos, ohos, openharmony/);
  });
});
