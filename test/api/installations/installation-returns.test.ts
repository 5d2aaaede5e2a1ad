import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
const path = '/1.1/installations';
let serial = 0;
const newId = (kind: string): string => {
  serial += 1;
  return `${kind}-${serial}`;
};
const post = (body: object) => api.request('POST', path, { app, body });
const put = (id: string, body: object, query = '') =>
  api.request('PUT', `${path}/${id}${query}`, { app, body });
const get = async (id: string) => (await api.request('GET', `${path}/${id}`, { app })).body;

/** Returns the ids of the installations that match a condition. */
async function found(where: object): Promise<string[]> {
  const query = encodeURIComponent(JSON.stringify(where));
  const { body } = await api.request('GET', `${path}?where=${query}`, { app, master: true });
  return body.results.map(({ objectId }: { objectId: string }) => objectId);
}

describe('a device whose installation was deleted', () => {
  test('registers again by PUT under its former id', async () => {
    const [id, installationId] = [newId('kept'), newId('device')];
    const body = { deviceType: 'android', installationId, channels: ['news'], city: 'Berlin' };
    const reply = await put(id, body);
    expect({ status: reply.status, members: Object.keys(reply.body).sort() }).toEqual({
      status: 200,
      members: ['objectId', 'updatedAt'],
    });
    expect(reply.body.objectId).toBe(id);
    expect(await get(id)).toMatchObject({ ...body, objectId: id, valid: true });
    expect((await put(id, { ...body, city: 'Rome' })).body.objectId).toBe(id);
    expect(await found({ installationId })).toEqual([id]);
  });

  const identities: [string, object, string][] = [
    ['its device token', { deviceToken: 'token-alone' }, 'ios'],
    [
      'its installation id',
      { installationId: 'id-alone', channels: { __op: 'AddUnique', objects: ['a'] } },
      'android',
    ],
    ['the id of its vendor', { registrationId: 'vendor-alone', vendor: 'HMS' }, 'android'],
  ];
  test.each(identities)('returns by %s alone', async (_name, body, deviceType) => {
    const id = newId('kept');
    expect(await put(id, body)).toMatchObject({ status: 200, body: { objectId: id } });
    expect(await get(id)).toMatchObject({ objectId: id, deviceType });
    // Repeats this with another former id. There is still one installation.
    expect(await put(newId('older'), body)).toMatchObject({ status: 200, body: { objectId: id } });
  });

  test('registers again through the path of objects and with its old times', async () => {
    const id = newId('kept');
    const body = {
      objectId: id,
      createdAt: '2020-01-01T00:00:00.000Z',
      deviceType: 'ios',
      deviceToken: newId('token'),
    };
    const reply = await api.request('PUT', `/1.1/classes/_Installation/${id}?where=&new=true`, {
      app,
      body,
    });
    expect(reply).toMatchObject({
      status: 200,
      body: { objectId: id, deviceToken: body.deviceToken },
    });
    expect((await get(id)).createdAt > '2025').toBe(true);
  });

  test('registers again in a batch and in batch/save', async () => {
    const ids = [newId('kept'), newId('kept')];
    const bodies = ids.map(() => ({ deviceType: 'android', installationId: newId('device') }));
    const requestOf = (i: number, more: object = {}) => ({
      method: 'PUT',
      path: `${path}/${ids[i]}`,
      body: { ...bodies[i], ...more },
    });
    const batch = await api.request('POST', '/1.1/batch', {
      app,
      body: { requests: [requestOf(0)] },
    });
    expect(batch.body).toEqual([{ success: { objectId: ids[0], updatedAt: expect.any(String) } }]);
    const save = await api.request('POST', '/1.1/batch/save', {
      app,
      body: { requests: [requestOf(1, { __internalId: ids[1] })] },
    });
    expect(save.body).toEqual({
      [ids[1] ?? '']: { objectId: ids[1], updatedAt: expect.any(String) },
    });
    expect(await get(ids[1] ?? '')).toMatchObject({ ...bodies[1], objectId: ids[1] });
  });

  test('has one installation if it registered under another id before', async () => {
    const device = { deviceType: 'android', installationId: newId('device') };
    const { objectId } = (await post(device)).body;
    const reply = await put(newId('older'), { ...device, channels: ['news'] });
    expect(reply).toMatchObject({ status: 200, body: { objectId } });
    expect(await found({ installationId: device.installationId })).toEqual([objectId]);
    expect((await get(objectId)).channels).toEqual(['news']);
  });

  test('has one installation after many concurrent calls', async () => {
    const [id, body] = [newId('kept'), { deviceType: 'android', installationId: newId('device') }];
    const replies = await Promise.all(Array.from({ length: 8 }, () => put(id, body)));
    expect(new Set(replies.map((reply) => `${reply.status} ${reply.body.objectId}`))).toEqual(
      new Set([`200 ${id}`]),
    );
  });

  test('does not take the token of another device (137)', async () => {
    const deviceToken = newId('token');
    await post({ deviceType: 'android', installationId: newId('device'), deviceToken });
    const taken = { deviceType: 'android', installationId: newId('device'), deviceToken };
    expect((await put(newId('kept'), taken)).body.code).toBe(137);
  });

  const refusals: [string, object, number][] = [
    ['a missing identity', { deviceType: 'android', channels: ['a'] }, 1],
    ['the identity of an operation', { deviceToken: { __op: 'Delete' } }, 1],
    ['an empty identity', { deviceToken: '' }, 1],
    ['an iOS device without a token', { deviceType: 'ios', installationId: 'x' }, 114],
    [
      'an Android device without an installation id or a vendor',
      { deviceType: 'android', registrationId: 'r' },
      111,
    ],
    ['another object id in the body', { installationId: 'y', objectId: 'other' }, 117],
    ['a bad channel', { installationId: 'z', channels: ['a b'] }, 112],
  ];
  test.each(refusals)('is refused with %s', async (_name, body, code) => {
    const id = newId('kept');
    expect(await put(id, body)).toMatchObject({ status: 400, body: { code } });
    expect(await get(id)).toEqual({});
  });

  test('is refused with a condition or an invalid id', async () => {
    const body = { deviceType: 'android', installationId: newId('device') };
    const where = encodeURIComponent(JSON.stringify({ a: 1 }));
    expect((await put(newId('kept'), body, `?where=${where}`)).body.code).toBe(1);
    expect((await put('%00', body)).body.code).toBe(1);
    expect((await put('x'.repeat(65), body)).body.code).toBe(1);
  });
});
