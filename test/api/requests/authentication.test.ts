import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

let app: App;
let other: App;

/** Keys of the test vectors in protocol/clients.md#request-signature. */
const keys = { appKey: 'UtOCzqb67d3sN12Kts4URwy8', masterKey: 'DyJegPlemooo4X1tg94gQkw1' };
const appId = 'mdx1l0uh1p08tdpsk8ffn4uxjh2bbhl86rebrk3muph08qx7';
const appSign = 'd5bcbb897e19b2f6633c716dfdfaf9be,1453014943466';
const masterSign = 'e074720658078c898aa0d4b1b82bdf4b,1453014943466,master';

const api = useTestApi();
beforeAll(async () => {
  app = await api.services.apps.create({ name: 'Vectors', appId, ...keys });
  other = await api.createApp();
});

/** Route that needs any kind of key. */
const withKey = '/1.1/installations/000000000000000000000000';
/** Route that needs the master key. */
const withMaster = '/1.1/notifications';

const statuses = async (headers: Record<string, string>) => {
  const any = await api.request('GET', withKey, { headers });
  const master = await api.request('GET', withMaster, { headers });
  for (const { status, body } of [any, master])
    if (status === 401) expect(body).toEqual({ code: 401, error: 'Unauthorized.' });
  return [any.status === 401 ? 401 : 'in', master.status === 200 ? 'in' : master.status];
};

const bothRefused = [401, 401];
const client = ['in', 403];
const operator = ['in', 'in'];

const signOf = (timestamp: string, key: string) =>
  createHash('md5').update(`${timestamp}${key}`).digest('hex');

describe('a request is refused with', () => {
  const cases: [string, () => Record<string, string>][] = [
    ['nothing', () => ({})],
    ['an id alone', () => ({ 'X-LC-Id': app.appId })],
    ['a key alone', () => ({ 'X-LC-Key': app.appKey })],
    ['an unknown id', () => ({ 'X-LC-Id': 'unknown', 'X-LC-Key': app.appKey })],
    ['an invalid id', () => ({ 'X-LC-Id': "x' OR '1'='1", 'X-LC-Key': app.appKey })],
    ['a member of every object as id', () => ({ 'X-LC-Id': '__proto__', 'X-LC-Key': app.appKey })],
    ['a wrong key', () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': `${app.appKey}x` })],
    [
      'the beginning of the key',
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey.slice(0, -1) }),
    ],
    ['the key in capitals', () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey.toUpperCase() })],
    ["another app's key", () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': other.appKey })],
    [
      "another app's master key",
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': `${other.masterKey},master` }),
    ],
    ['the app key as master', () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': `${app.appKey},master` })],
    [
      'the master key without saying so',
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': app.masterKey }),
    ],
    [
      'the app key in the header of the master key',
      () => ({
        'X-LC-Id': app.appId,
        'X-AVOSCloud-Master-Key': app.appKey,
      }),
    ],
    ['the hook key', () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': app.hookKey })],
    ['",master" alone', () => ({ 'X-LC-Id': app.appId, 'X-LC-Key': ',master' })],
    ['an invalid signature', () => ({ 'X-LC-Id': app.appId, 'X-LC-Sign': 'x,1' })],
    ['a sign in capitals', () => ({ 'X-LC-Id': app.appId, 'X-LC-Sign': appSign.toUpperCase() })],
    [
      'a sign of another time',
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Sign': appSign.replace(/6$/, '7') }),
    ],
    [
      'a sign of the app key as master',
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Sign': `${appSign},master` }),
    ],
    [
      'a signature by the master key without ",master"',
      () => ({
        'X-LC-Id': app.appId,
        'X-LC-Sign': masterSign.replace(',master', ''),
      }),
    ],
    [
      'a sign of another kind',
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Sign': `${appSign},ax-sig-1` }),
    ],
    [
      'a sign without a time',
      () => ({ 'X-LC-Id': app.appId, 'X-LC-Sign': `${signOf('', app.appKey)},` }),
    ],
    [
      'a wrong key and a valid signature',
      () => ({
        'X-LC-Id': app.appId,
        'X-LC-Key': 'wrong',
        'X-LC-Sign': appSign,
      }),
    ],
    [
      "the operator's token",
      () => ({ Authorization: `Bearer ${testConfig(api.databaseUrl).adminToken}` }),
    ],
  ];
  test.each(cases)('%s', async (_case, headers) => {
    expect(await statuses(headers())).toEqual(bothRefused);
  });
});

describe('a request is accepted', () => {
  const ids = ['X-LC-Id', 'X-AVOSCloud-Application-Id', 'X-Uluru-Application-Id', 'x-lc-id'];
  const cases: [string, string, () => string, (string | number)[]][] = [
    ['app key', 'X-LC-Key', () => app.appKey, client],
    ['app key', 'X-AVOSCloud-Application-Key', () => app.appKey, client],
    ['app key', 'X-Uluru-Application-Key', () => app.appKey, client],
    ['master key', 'X-LC-Key', () => `${app.masterKey},master`, operator],
    ['master key', 'X-AVOSCloud-Application-Key', () => `${app.masterKey},master`, operator],
    ['master key', 'X-AVOSCloud-Master-Key', () => app.masterKey, operator],
    ['master key', 'X-AVOSCloud-Master-Key', () => `${app.masterKey},master`, operator],
    ['master key', 'X-Uluru-Master-Key', () => app.masterKey, operator],
    ['master key', 'X-AVOSCloud-Super-Key', () => app.masterKey, operator],
    ['the vector of the app key', 'X-LC-Sign', () => appSign, client],
    ['the vector of the master key', 'X-LC-Sign', () => masterSign, operator],
    ['the vector of the app key', 'X-AVOSCloud-Request-Sign', () => appSign, client],
    ['the vector of the master key', 'X-AVOSCloud-Request-Sign', () => masterSign, operator],
  ];
  test.each(cases)(
    'with %s in %s, under every name of the id',
    async (_case, name, value, expected) => {
      for (const id of ids)
        expect(await statuses({ [id]: app.appId, [name]: value() })).toEqual(expected);
    },
  );

  test('with a signature of any age, because there is no replay window', async () => {
    for (const timestamp of ['1', String(Date.now()), '99999999999999'])
      expect(
        await statuses({
          'X-LC-Id': app.appId,
          'X-LC-Sign': `${signOf(timestamp, app.appKey)},${timestamp}`,
        }),
      ).toEqual(client);
  });

  test('with an unknown session, if the route needs no user', async () => {
    const headers = { 'X-LC-Id': app.appId, 'X-LC-Sign': appSign, 'X-LC-Session': '0' };
    expect(await statuses(headers)).toEqual(client);
  });

  test('but not without a required master key: 403 names what is missing', async () => {
    const { status, body } = await api.request('GET', withMaster, { app });
    expect({ status, body }).toEqual({
      status: 403,
      body: { code: 403, error: 'The request must be signed by master key.' },
    });
  });

  test('until one second after its app is deleted', async () => {
    const removed = await api.createApp();
    expect((await api.request('GET', withMaster, { app: removed, master: true })).status).toBe(200);
    await api.request('DELETE', `/console/api/apps/${removed.appId}`, {
      admin: true,
      body: { appId: removed.appId },
    });
    expect((await api.request('GET', withMaster, { app: removed, master: true })).status).toBe(401);
  });
});

describe('X-LC-Prod', () => {
  const names = [
    'X-LC-Prod',
    'X-AVOSCloud-Application-Production',
    'X-Uluru-Application-Production',
  ];
  const cases: [string | undefined, string][] = [
    [undefined, 'prod'],
    ['1', 'prod'],
    ['true', 'prod'],
    ['0', 'dev'],
    ['false', 'dev'],
    ['2', 'dev'],
  ];

  test.each(cases)('%j means %s if the push has no prod', async (value, prod) => {
    for (const name of names) {
      const headers: Record<string, string> = value === undefined ? {} : { [name]: value };
      const where = { deviceType: 'android' };
      const sent = { app, master: true, headers, body: { data: { alert: 'x' }, where } };
      const { status, body } = await api.request('POST', '/1.1/push', sent);
      expect({ status, body }).toMatchObject({ status: 200 });
      const record = await api.request('GET', `/1.1/notifications/${body.objectId}`, { app });
      expect(record.body.prod).toBe(prod);
    }
  });

  test('is overridden by prod in the push', async () => {
    const body = { data: { alert: 'x' }, where: { deviceType: 'android' }, prod: 'prod' };
    const sent = await api.request('POST', '/1.1/push', {
      app,
      master: true,
      body,
      headers: { 'X-LC-Prod': '0' },
    });
    const record = await api.request('GET', `/1.1/notifications/${sent.body.objectId}`, { app });
    expect(record.body.prod).toBe('prod');
  });
});
