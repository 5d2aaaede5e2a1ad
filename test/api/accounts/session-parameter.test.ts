import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Route } from '../../../api/route.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';
import { refusalOf, refused, signUp, type TestUser } from '../../support/users.ts';

/**
 * Tests that the token in the query takes precedence over the header
 * (protocol/clients.md#sessions-in-requests).
 */
const api = useTestApi();
let app: App;
let current: TestUser;
let other: TestUser;
let routes: Route[];

beforeAll(async () => {
  app = await api.createApp({ allowUserQuery: true });
  current = await signUp(api, app, { ACL: {} });
  other = await signUp(api, app);
  await other.put({ ACL: { [other.id]: { read: true, write: true } } });
  routes = await loadRoutes();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const unknown = 'unknowntokenunknowntoken1';
const readsSession = ({ session }: Route) => session !== undefined;
const nameOf = (route: Route) => `${route.method} ${route.paths[0]}`;

/** Sends a call with the token of `current` in a header and another token in the query. */
const send = (method: string, path: string, token: string, header = 'X-LC-Session') =>
  api.request(method, `${path}${path.includes('?') ? '&' : '?'}session_token=${token}`, {
    app,
    headers: { [header]: current.token },
    ...(method === 'GET' ? {} : { body: {} }),
  });

describe('session_token in the query', () => {
  test.each(['X-LC-Session', 'X-AVOSCloud-Session-Token', 'X-Uluru-Session-Token'])(
    'decides the user of GET /users/me, whatever %s contains',
    async (header) => {
      const reply = await send('GET', '/1.1/users/me', other.token, header);
      expect(reply).toMatchObject({
        status: 200,
        body: { objectId: other.id, sessionToken: other.token },
      });
      for (const token of [unknown, 'x', '%00', '{}', `${other.token}x`])
        expect(refusalOf(await send('GET', '/1.1/users/me', token, header)), token).toEqual(
          refused(211),
        );
    },
  );

  test('counts as missing if it is empty, and as unknown if there are two', async () => {
    expect((await send('GET', '/1.1/users/me', '')).body.objectId).toBe(current.id);
    const two = await send('GET', '/1.1/users/me', `${other.token}&session_token=${current.token}`);
    expect(refusalOf(two)).toEqual(refused(211));
  });

  test('is the only session that any route looks up', async () => {
    const find = vi.spyOn(api.services.sessions, 'findOwner');
    const parsed = routes.filter(readsSession);
    expect(parsed.length).toBeGreaterThan(18);
    for (const route of parsed)
      for (const path of route.paths) {
        find.mockClear();
        const reply = await send(route.method, path.replace(/:\w+/g, 'nobody'), unknown);
        expect(reply.status, nameOf(route)).toBeLessThan(500);
        const tokens = find.mock.calls.map(([, token]) => token);
        expect([...new Set(tokens)], `${route.method} ${path}`).toEqual([unknown]);
      }
  });

  test('is refused if it is unknown and a user is needed', async () => {
    for (const route of routes.filter(({ session }) => session === 'required'))
      for (const path of route.paths) {
        const reply = await send(route.method, path.replace(/:\w+/g, current.id), unknown);
        expect(refusalOf(reply), `${route.method} ${path}`).toEqual(refused(206, 403));
      }
    expect((await current.me()).objectId).toBe(current.id);
  });

  test('decides which objects a list shows', async () => {
    const path = `/1.1/users?where=${encodeURIComponent(JSON.stringify({ objectId: other.id }))}`;
    const idsFor = async (token: string) =>
      (await send('GET', path, token)).body.results.map(
        ({ objectId }: { objectId: string }) => objectId,
      );
    expect(await idsFor(other.token)).toEqual([other.id]);
    expect(await idsFor('')).toEqual([]);
    expect(await idsFor(unknown)).toEqual([]);
  });

  test('decides whose permissions a write has', async () => {
    const put = (token: string) => send('PUT', `/1.1/users/${other.id}`, token);
    expect((await put(other.token)).status).toBe(200);
    expect(refusalOf(await put(current.token))).toEqual(refused(206, 403));
    expect(refusalOf(await send('PUT', `/1.1/users/${current.id}`, other.token))).toEqual(
      refused(206, 403),
    );
  });

  test('applies in a batch, to the whole batch or to one of its calls', async () => {
    const me = (item: object) => ({ method: 'GET', ...item });
    const requests = [
      me({ path: '/1.1/users/me' }),
      me({ path: `/1.1/users/me?session_token=${other.token}` }),
      me({ path: '/1.1/users/me', params: { session_token: other.token } }),
      me({ path: `/1.1/users/me?session_token=${unknown}` }),
      {
        method: 'PUT',
        path: `/1.1/users/${current.id}?session_token=${other.token}`,
        body: { a: 1 },
      },
    ];
    const batch = async (query: string) => {
      const headers = { 'X-LC-Session': current.token };
      const { body } = await api.request('POST', `/1.1/batch${query}`, {
        app,
        headers,
        body: { requests },
      });
      return body.map(
        ({ success, error }: { success?: { objectId: string }; error?: { code: number } }) =>
          success ? success.objectId : error?.code,
      );
    };
    expect(await batch('')).toEqual([current.id, other.id, other.id, 211, 206]);
    expect(await batch(`?session_token=${other.token}`)).toEqual([
      other.id,
      other.id,
      other.id,
      211,
      206,
    ]);
    expect(await batch(`?session_token=${unknown}`)).toEqual([211, other.id, other.id, 211, 206]);
  });

  test('takes precedence over the token of a text-form body', async () => {
    const body = JSON.stringify({
      _ApplicationId: app.appId,
      _ApplicationKey: app.appKey,
      _SessionToken: current.token,
      _method: 'GET',
    });
    const ask = async (query: string) =>
      (
        await api.request('POST', `/1.1/users/me${query}`, {
          headers: { 'Content-Type': 'text/plain' },
          body,
        })
      ).body.objectId;
    expect(await ask('')).toBe(current.id);
    expect(await ask(`?session_token=${other.token}`)).toBe(other.id);
  });
});
