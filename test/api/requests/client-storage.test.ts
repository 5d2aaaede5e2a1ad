import { describe, expect, test } from 'vitest';
import { ClientStorage } from '../../../api/services/client-storage.ts';
import type { App, AppOptionsPatch } from '../../../shared/domain/apps/app.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, newUid, refusalOf, refused, signUp, type TestUser } from '../../support/users.ts';

const clock = movableClock(Date.now());
const minute = 60_000;
const api = useTestApi({ clock, env: { TRUSTED_PROXIES: '1' } });

let hosts = 0;
const newAddress = () => `192.0.2.${++hosts}`;

interface Sender {
  app: App;
  address: string;
  user?: TestUser;
  master?: boolean;
}

const call = (
  { app, address, user, master = false }: Sender,
  method: string,
  path: string,
  body?: unknown,
) =>
  api.request(method, `/1.1/${path}`, {
    app,
    master,
    ...(body === undefined ? {} : { body }),
    headers: { 'X-Forwarded-For': address, ...(user ? { 'X-LC-Session': user.token } : {}) },
  });

/**
 * For each kind of object that an app key can create: the call, with a text of the given size in
 * the new object, and the options that limit it.
 */
const creations = {
  installation: {
    create: (sender: Sender, bytes = 0) =>
      call(sender, 'POST', 'installations', {
        deviceType: 'android',
        installationId: newUid(),
        text: 'x'.repeat(bytes),
      }),
    perHour: (n: number): AppOptionsPatch => ({ installationsPerAddressPerHour: n }),
    perDay: (n: number): AppOptionsPatch => ({ installationBytesPerAddressPerDay: n }),
  },
  'installation of class _Installation': {
    create: (sender: Sender, bytes = 0) =>
      call(sender, 'POST', 'classes/_Installation', {
        deviceType: 'ios',
        deviceToken: newUid() + newUid(),
        text: 'x'.repeat(bytes),
      }),
    perHour: (n: number): AppOptionsPatch => ({ installationsPerAddressPerHour: n }),
    perDay: (n: number): AppOptionsPatch => ({ installationBytesPerAddressPerDay: n }),
  },
  'installation that returns under its id': {
    create: (sender: Sender, bytes = 0) =>
      call(sender, 'PUT', `installations/${newUid().slice(0, 24)}`, {
        deviceType: 'android',
        installationId: newUid(),
        text: 'x'.repeat(bytes),
      }),
    perHour: (n: number): AppOptionsPatch => ({ installationsPerAddressPerHour: n }),
    perDay: (n: number): AppOptionsPatch => ({ installationBytesPerAddressPerDay: n }),
  },
  role: {
    create: (sender: Sender, bytes = 0) =>
      call(sender, 'POST', 'roles', {
        name: newName(),
        ACL: { '*': { read: true, write: true } },
        text: 'x'.repeat(bytes),
      }),
    perHour: (n: number): AppOptionsPatch => ({ rolesPerAddressPerHour: n }),
    perDay: (n: number): AppOptionsPatch => ({ roleBytesPerAddressPerDay: n }),
  },
  user: {
    create: (sender: Sender, bytes = 0) =>
      call(sender, 'POST', 'users', {
        username: newName(),
        password: 'secret',
        text: 'x'.repeat(bytes),
      }),
    perHour: (n: number): AppOptionsPatch => ({ signUpsPerAddressPerHour: n }),
    perDay: (n: number): AppOptionsPatch => ({ signUpBytesPerAddressPerDay: n }),
  },
  captcha: {
    create: (sender: Sender) => call(sender, 'GET', 'requestCaptcha'),
    perHour: (n: number): AppOptionsPatch => ({
      captchasPerAddressPerHour: n,
      captchaForSms: true,
    }),
    perDay: undefined,
  },
};
const kinds = Object.entries(creations);

describe.each(kinds)('with the app key, each new %s', (_, { create, perHour, perDay }) => {
  test('counts per hour and network address: then 429 with the remaining seconds', async () => {
    const app = await api.createApp(perHour(3));
    const sender = { app, address: newAddress() };
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await create(sender)).status);
    expect(statuses.every((status) => status < 300)).toBe(true);
    const reply = await create(sender);
    expect(refusalOf(reply)).toEqual(refused(429, 429));
    const seconds = Number(reply.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(3600);
    // Other addresses, servers of the app and the next hour are not limited.
    expect((await create({ app, address: newAddress() })).status).toBeLessThan(300);
    expect((await create({ ...sender, master: true })).status).toBeLessThan(300);
    clock.moveMs(61 * minute);
    expect((await create(sender)).status).toBeLessThan(300);
  });

  test('counts if it comes with concurrent calls', async () => {
    const app = await api.createApp(perHour(5));
    const sender = { app, address: newAddress() };
    const replies = await Promise.all(Array.from({ length: 20 }, () => create(sender)));
    const count = (is: (status: number) => boolean) =>
      replies.filter(({ status }) => is(status)).length;
    expect([count((status) => status < 300), count((status) => status === 429)]).toEqual([5, 15]);
  });

  test.skipIf(perDay === undefined)('counts by its bytes per day and network address', async () => {
    const app = await api.createApp(perDay?.(25_000));
    const sender = { app, address: newAddress() };
    const sizes = [10_000, 10_000, 10_000];
    const statuses = [];
    for (const bytes of sizes) statuses.push((await create(sender, bytes)).status);
    expect(statuses.map((status) => status < 300)).toEqual([true, true, false]);
    expect((await create(sender, 100)).status).toBeLessThan(300);
    expect((await create({ ...sender, master: true }, 10_000)).status).toBeLessThan(300);
    clock.moveMs(25 * 60 * minute);
    expect((await create(sender, 10_000)).status).toBeLessThan(300);
  });
});

test.each(kinds.filter(([, { perDay }]) => perDay))(
  'every %s in a batch counts like a single call',
  async (kind, { perHour }) => {
    if (kind.includes('returns')) return;
    const app = await api.createApp(perHour(2));
    const [path, body] = kind.startsWith('installation')
      ? ['/1.1/installations', () => ({ deviceType: 'android', installationId: newUid() })]
      : kind === 'role'
        ? ['/1.1/roles', () => ({ name: newName(), ACL: { '*': { read: true } } })]
        : ['/1.1/users', () => ({ username: newName(), password: 'secret' })];
    const requests = Array.from({ length: 4 }, () => ({ method: 'POST', path, body: body() }));
    const reply = await call({ app, address: newAddress() }, 'POST', 'batch', { requests });
    const codes = reply.body.map(({ error }: { error?: { code: number } }) => error?.code);
    expect(codes.toSorted()).toEqual([429, 429, undefined, undefined]);
  },
);

describe('with the app key', () => {
  test.each([
    ['installation', creations.installation.create, 'installations'],
    ['role', creations.role.create, 'roles'],
  ] as const)(
    'an %s can have 16 KB, also after a change; more needs the master key',
    async (_, create, path) => {
      const app = await api.createApp();
      const sender = { app, address: newAddress() };
      expect(refusalOf(await create(sender, 17_000))).toEqual(refused(116));
      const created = await create(sender, 15_000);
      expect(created.status).toBe(201);
      const id = created.body.objectId;
      const grow = { more: 'x'.repeat(3000) };
      expect(refusalOf(await call(sender, 'PUT', `${path}/${id}`, grow))).toEqual(refused(116));
      expect((await call({ ...sender, master: true }, 'PUT', `${path}/${id}`, grow)).status).toBe(
        200,
      );
      // An object that is already larger may change and shrink.
      expect((await call(sender, 'PUT', `${path}/${id}`, { more: 'y'.repeat(3000) })).status).toBe(
        200,
      );
      expect(
        refusalOf(await call(sender, 'PUT', `${path}/${id}`, { more: 'x'.repeat(3100) })),
      ).toEqual(refused(116));
      expect(
        (await call(sender, 'PUT', `${path}/${id}`, { more: { __op: 'Delete' } })).status,
      ).toBe(200);
    },
  );

  test.each([
    [
      'an installation',
      creations.installation.create,
      'installations',
      'installationBytesPerAddressPerDay',
    ],
    ['a role', creations.role.create, 'roles', 'roleBytesPerAddressPerDay'],
  ] as const)(
    'the growth of %s counts towards the bytes per day',
    async (_, create, path, option) => {
      const app = await api.createApp({ [option]: 20_000 });
      const sender = { app, address: newAddress() };
      const ids = [(await create(sender)).body.objectId, (await create(sender)).body.objectId];
      const grow = (id: string) =>
        call(sender, 'PUT', `${path}/${id}`, { text: 'x'.repeat(12_000) });
      expect((await grow(ids[0])).status).toBe(200);
      // Sending the same content again is no growth.
      expect((await grow(ids[0])).status).toBe(200);
      expect(refusalOf(await grow(ids[1]))).toEqual(refused(429, 429));
    },
  );

  test('the growth of an installation by small registrations counts too', async () => {
    const app = await api.createApp({
      installationBytesPerAddressPerDay: 4000,
      installationBytes: 2048,
    });
    const sender = { app, address: newAddress() };
    const register = (installationId: string, more: object) =>
      call(sender, 'POST', 'installations', { deviceType: 'android', installationId, ...more });
    const [first, second, third] = [newUid(), newUid(), newUid()];
    for (const id of [first, second, third]) expect((await register(id, {})).status, id).toBe(201);
    const text = 'x'.repeat(1200);
    expect((await register(first, { text })).status).toBe(200);
    expect((await register(second, { text })).status).toBe(200);
    // Sending the same content again is no growth.
    expect((await register(second, { text })).status).toBe(200);
    expect(refusalOf(await register(first, { more: text }))).toEqual(refused(116));
    expect(refusalOf(await register(third, { text }))).toEqual(refused(429, 429));
  });

  test('the growth of users counts towards the bytes per day', async () => {
    const app = await api.createApp({ signUpBytesPerAddressPerDay: 20_000 });
    const user = await signUp(api, app);
    const sender = { app, address: newAddress(), user };
    const grow = (bytes: number) =>
      call(sender, 'PUT', `users/${user.id}`, { text: 'x'.repeat(bytes) });
    expect((await grow(15_000)).status).toBe(200);
    expect((await grow(15_000)).status).toBe(200);
    expect(refusalOf(await grow(40_000))).toEqual(refused(429, 429));
    expect((await grow(100)).status).toBe(200);
  });

  test('a login with the tokens of a third-party account is no growth', async () => {
    const app = await api.createApp({ signUpBytesPerAddressPerDay: 5000 });
    const sender = { app, address: newAddress() };
    const uid = newUid();
    for (let i = 0; i < 15; i += 1) {
      const authData = { github: { uid, access_token: `${i} ${'x'.repeat(500)}` } };
      expect((await call(sender, 'POST', 'users', { authData })).status, `${i}`).toBeLessThan(300);
    }
  });

  test('a change of a user that is refused does not count towards the bytes per day', async () => {
    const app = await api.createApp({ signUpBytesPerAddressPerDay: 20_000 });
    const user = await signUp(api, app);
    const other = await signUp(api, app);
    const sender = { app, address: newAddress(), user };
    const text = 'x'.repeat(9000);
    for (let i = 0; i < 3; i += 1) {
      const taken = { text, username: other.body.username };
      expect(refusalOf(await call(sender, 'PUT', `users/${user.id}`, taken))).toEqual(refused(202));
    }
    expect((await call(sender, 'PUT', `users/${user.id}`, { text })).status).toBe(200);
  });

  test('members of roles count towards the bytes per day', async () => {
    const app = await api.createApp({ roleBytesPerAddressPerDay: 5000 });
    const users = await Promise.all(Array.from({ length: 30 }, () => signUp(api, app)));
    const sender = { app, address: newAddress() };
    const pointers = users.map(({ id }) => ({
      __type: 'Pointer',
      className: '_User',
      objectId: id,
    }));
    const create = () =>
      call(sender, 'POST', 'roles', {
        name: newName(),
        ACL: { '*': { read: true } },
        users: { __op: 'AddRelation', objects: pointers },
      });
    expect((await create()).status).toBe(201);
    expect(refusalOf(await create())).toEqual(refused(429, 429));
  });

  test('a save that is refused or updates a device does not count', async () => {
    const app = await api.createApp({ installationsPerAddressPerHour: 2 });
    const sender = { app, address: newAddress() };
    const device = { deviceType: 'android', installationId: newUid() };
    for (let i = 0; i < 5; i += 1) {
      expect((await call(sender, 'POST', 'installations', device)).status).toBeLessThan(300);
      expect((await call(sender, 'POST', 'installations', { deviceType: 'fridge' })).status).toBe(
        400,
      );
    }
    const large = { ...device, text: 'x'.repeat(5000) };
    for (let i = 0; i < 3; i += 1)
      expect((await call(sender, 'POST', 'installations', large)).status).toBe(200);
    expect((await creations.installation.create(sender)).status).toBe(201);
    expect((await creations.installation.create(sender)).status).toBe(429);
  });
});

test('for more network addresses than the limit, the oldest is evicted', () => {
  const storage = new ClientStorage(clock, 2);
  const app = {
    appId: 'a',
    options: { rolesPerAddressPerHour: 1, roleBytesPerAddressPerDay: 9e6, roleBytes: 1024 },
  };
  const create = (remoteAddress: string) =>
    // Only these options are read.
    storage
      .accountOf('roles', { app: app as unknown as App, isMaster: false, remoteAddress })
      ?.create(1);
  create('192.0.2.1');
  expect(() => create('192.0.2.1')).toThrow('Too many roles');
  create('192.0.2.2');
  create('192.0.2.3');
  expect(() => create('192.0.2.1')).not.toThrow();
});
