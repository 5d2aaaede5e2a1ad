import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Route } from '../../../api/route.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
const { adminToken } = testConfig('postgresql://unused');
let app: App;
let routes: Route[];

beforeAll(async () => {
  routes = await loadRoutes();
  app = await api.createApp();
  const path = `/console/api/apps/${app.appId}`;
  for (const [kind, body] of [
    ['audiences/all', { where: {} }],
    ['push-templates/hello', { body: { data: { alert: 'Hello' } } }],
    ['sms-templates/code', { type: 'verification', text: 'Your code: {{code}}' }],
  ] as const)
    await api.request('PUT', `${path}/${kind}`, { admin: true, body });
});

/** Path segments that a browser or proxy may resolve, so that the path means another route. */
const ambiguous = [
  '.',
  '..',
  '%2e',
  '%2E%2e',
  '.%2e',
  '%2e.',
  '%252e%252e',
  '%25252e.',
  'a%2fb',
  '%2F',
  '..%2f..',
  '%252f',
  'a%5cb',
  '%5C',
  'a\\b',
  '..\\..',
  '%255c',
  '%2525252525252e',
];

const headers = () => ({
  Authorization: `Bearer ${adminToken}`,
  'X-LC-Id': app.appId,
  'X-LC-Key': `${app.masterKey},master`,
  'Content-Type': 'application/json',
});

/** Sends a path unchanged. `fetch` would resolve its dots. */
async function send(method: string, path: string, body = '{}') {
  const isRead = method === 'GET' || method === 'HEAD';
  const length = isRead ? {} : { 'Content-Length': body.length };
  const sent = request(api.url, { method, path, headers: { ...headers(), ...length } });
  sent.end(isRead ? undefined : body);
  const [response] = await once(sent, 'response');
  const reply = await text(response);
  return { status: response.statusCode, body: reply, headers: response.headers };
}

/**
 * Returns the paths of a route in which the text replaces one parameter at a time. The other
 * parameters have existing values.
 */
function pathsWith(path: string, value: string): string[] {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
  return names.map((chosen) =>
    path.replace(/:(\w+)/g, (_, name) =>
      name === chosen ? value : name === 'appId' ? app.appId : 'all',
    ),
  );
}

/** Returns the content of all tables except those with call counters and heartbeats. */
async function content(): Promise<Record<string, string>> {
  const tables = await api.db.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'
      AND tablename <> 'channel_node' AND tablename !~ '^(process|call_)'`,
  );
  const digests = tables.rows.map(async ({ name }) => {
    const { rows } = await api.db.query<{ digest: string | null }>(
      `SELECT md5(string_agg(t::text, '' ORDER BY t::text)) AS digest FROM "${name}" AS t`,
    );
    return [name, rows[0]?.digest ?? ''];
  });
  return Object.fromEntries(await Promise.all(digests));
}

const nameOf = (route: Route) => `${route.method} ${route.paths.join(' ')}`;

describe('a path that proxies may interpret differently', () => {
  test.each(ambiguous)('is 400 on every route and changes nothing: %s', async (value) => {
    const before = await content();
    for (const route of routes)
      for (const path of route.paths.flatMap((one) => pathsWith(one, value))) {
        const reply = await send(route.method, path);
        expect(reply.status, `${nameOf(route)}: ${path}`).toBe(400);
        // Links in mails are opened by people.
        if (/verifyEmail|resetPassword\//.test(path))
          expect(reply.body).toMatch(/This link does not work/);
        else expect(JSON.parse(reply.body).code).toBe(1);
      }
    expect(await content()).toEqual(before);
  });

  test('is 400 as an additional part of every path', async () => {
    const before = await content();
    for (const route of routes)
      for (const path of route.paths)
        for (const value of ['/.', '/..', '/%2e%2E/', '/..%2f', '/x/../', '%2f', '\\', '/..?a=1']) {
          const reply = await send(
            route.method,
            path.replace(/:appId/, app.appId).replace(/:\w+/g, 'all') + value,
          );
          expect(reply.status, `${nameOf(route)}: ${path}${value}`).toBe(400);
        }
    expect(await content()).toEqual(before);
  });

  test.each([
    '/console/..%2fapi',
    '/console/%2e%2e/1.1/date',
    '/console/assets/..%2f..%2fapi/apps',
    '/console/apps/a%2fb',
    '/%2e%2e/healthz',
    '/callbacks/vendor_a/..%2f/x',
    '/.%2e/openapi.json',
  ])('is 400 for pages and files: %s', async (path) => {
    expect((await send('GET', path)).status).toBe(400);
    expect((await send('HEAD', path)).status).toBe(400);
  });

  test('is named in both languages', async () => {
    const reply = await send('GET', `/console/api/apps/..`);
    expect(JSON.parse(reply.body).error).toMatch(/^A part of the path is/);
    const detail = decodeURIComponent(String(reply.headers['x-carillon-refusal-detail']));
    expect(JSON.parse(detail)).toMatchObject({ code: 'ambiguousPath' });
  });

  test('refuses only its own call in a batch', async () => {
    const ofApp = routes.filter(({ isBatchable }) => isBatchable);
    for (const value of ambiguous) {
      const requests = ofApp.flatMap(({ method, paths }) =>
        paths.flatMap((path) => pathsWith(path, value)).map((path) => ({ method, path, body: {} })),
      );
      const body = { requests: [...requests, { method: 'GET', path: '/1.1/date' }] };
      const reply = await api.request('POST', '/1.1/batch', { app, master: true, body });
      expect(reply.body).toHaveLength(requests.length + 1);
      for (const item of reply.body.slice(0, -1))
        expect(item).toMatchObject({ error: { code: 1 } });
      expect(reply.body.at(-1)).toHaveProperty('success');
    }
  });
});

describe('a path has one spelling', () => {
  test('neither a trailing slash nor another case reaches a route', async () => {
    const before = await content();
    for (const route of routes)
      for (const path of route.paths) {
        const real = path.replace(/:appId/, app.appId).replace(/:\w+/g, 'all');
        expect([404, 405], `${nameOf(route)}/`).toContain(
          (await send(route.method, `${real}/`)).status,
        );
        const upper = real.replace(/^\/[a-z.]+/, (part) => part.toUpperCase());
        if (upper === real) continue;
        expect([404, 405], `${nameOf(route)}: ${upper}`).toContain(
          (await send(route.method, upper)).status,
        );
      }
    expect(await content()).toEqual(before);
  });

  test('names with dots, percent signs and spaces stay reachable', async () => {
    for (const name of [
      '...',
      '.a',
      'a..b',
      '50%',
      '100% off',
      '%',
      'a b',
      '新用户',
      'a+b',
      '%zz',
    ]) {
      const path = `/console/api/apps/${app.appId}/audiences/${encodeURIComponent(name)}`;
      const put = await api.request('PUT', path, { admin: true, body: { where: {} } });
      expect([put.status, put.body.name], name).toEqual([200, name]);
      expect((await api.request('GET', path, { admin: true })).body.name).toBe(name);
      expect((await api.request('DELETE', path, { admin: true })).status).toBe(200);
    }
  });
});

test('an app is deleted only with its id in the body', async () => {
  const doomed = await api.createApp();
  const path = `/console/api/apps/${doomed.appId}`;
  for (const body of [
    undefined,
    {},
    { appId: app.appId },
    { appId: doomed.appId, more: 1 },
    { appId: 1 },
  ]) {
    const reply = await api.request('DELETE', path, { admin: true, body });
    expect(reply.status, JSON.stringify(body)).toBe(400);
  }
  expect((await api.request('GET', path, { admin: true })).status).toBe(200);
  expect(
    (await api.request('DELETE', path, { admin: true, body: { appId: doomed.appId } })).status,
  ).toBe(200);
  expect((await api.request('GET', path, { admin: true })).status).toBe(404);
});

test('HEAD changes nothing on any route', async () => {
  const user = await api.request('POST', '/1.1/users', {
    app,
    body: { username: 'head', password: 'secret', email: 'head@example.com' },
  });
  await api.services.apps.change(app.appId, { options: { emailVerification: true } });
  await api.request('POST', '/1.1/requestEmailVerify', {
    app,
    body: { email: 'head@example.com' },
  });
  const path = `/console/api/apps/${app.appId}/outbox?to=head@example.com`;
  const [{ link }] = (await api.request('GET', path, { admin: true })).body.results;
  const before = await content();
  const paths = routes.filter(({ method }) => method === 'GET').flatMap((route) => route.paths);
  // The event stream has no end.
  for (const one of [...paths, '/1.1/login?username=head&password=wrong'].filter(
    (one) => !/events$/.test(one),
  )) {
    const filled = one
      .replace(':appId', app.appId)
      .replace('/verifyEmail/:token', new URL(link).pathname.replace('/1.1', ''))
      .replace(/:\w+/g, user.body.objectId);
    const reply = await send('HEAD', filled);
    expect([reply.body, (reply.status ?? 500) < 500], filled).toEqual(['', true]);
    // A redirect needs an address, which only the handler knows.
    expect(reply.status ?? 500, filled).not.toBe(302);
  }
  const { audit: _a, shared_reading: _m, ...after } = await content();
  const { audit: _b, shared_reading: _n, ...same } = before;
  expect(after).toEqual(same);
});
