import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildConsole } from '../../../ops/console/build.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

/** Headers of a browser that opens a URL. */
const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
const programs = [
  '*/*',
  'application/json',
  'application/json, text/plain, */*',
  'text/html;q=0.5,*/*',
];

let database: TestDatabase;
let api: TestApi;

beforeAll(async () => {
  database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
});
afterAll(async () => {
  await api?.close();
  await database?.drop();
});

const open = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(api.url + path, { method, headers: { ...browser, ...headers } });

describe('the front page', () => {
  test('describes the service, loads nothing and runs no scripts', async () => {
    const reply = await open('/');
    const html = await reply.text();
    expect(reply.status).toBe(200);
    expect(reply.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(reply.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src/);
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    expect(reply.headers.get('vary')).toMatch(/Accept, Accept-Language/);
    expect(html).toContain('A push-delivery server');
    expect(html).toMatch(/name="viewport"/);
    expect(html).not.toMatch(/<script|<link|<img|src=|https?:/);
  });

  test('links only to existing routes', { timeout: 90_000 }, async () => {
    // A new clone contains no built console.
    await buildConsole();
    const html = await (await open('/')).text();
    const links = [...html.matchAll(/href="([^"]+)"/g)].map(([, path = '']) => path);
    expect(links).toContain('/healthz');
    for (const path of links) expect((await fetch(api.url + path)).status, path).toBe(200);
    for (const path of ['/console', '/docs'])
      expect(links.includes(path), path).toBe((await fetch(api.url + path)).status !== 404);
  });

  test('is in the language of the reader', async () => {
    expect(await (await open('/', { 'Accept-Language': 'zh-CN,zh;q=0.9' })).text()).toMatch(
      /lang="zh"[\s\S]*推送服务器/,
    );
    expect(await (await open('/', { 'Accept-Language': 'de' })).text()).toMatch(/lang="en"/);
  });

  test('answers HEAD like GET, without a body', async () => {
    const reply = await open('/', {}, 'HEAD');
    expect([reply.status, await reply.text()]).toEqual([200, '']);
  });
});

describe('a path without a route', () => {
  test('is a page for browsers', async () => {
    for (const path of ['/nothing', '/1.1/nothing', '/console/nothing', '/%22%3E%3Cscript%3E']) {
      const reply = await open(path);
      const html = await reply.text();
      expect([path, reply.status]).toEqual([path, 404]);
      expect(reply.headers.get('content-security-policy')).toMatch(/default-src 'none'/);
      expect(html).toContain('Page not found');
      expect(html).not.toMatch(/script/);
    }
    expect(await (await open('/nothing', { 'Accept-Language': 'zh' })).text()).toContain(
      '页面不存在',
    );
  });

  test.each(programs)(
    'is JSON for clients that accept %s, and so is the front page',
    async (accept) => {
      for (const path of ['/', '/nothing']) {
        const reply = await fetch(api.url + path, { headers: { Accept: accept } });
        expect(reply.status).toBe(404);
        expect(await reply.json()).toEqual({ code: 404, error: 'Not found.' });
        expect(reply.headers.get('vary')).toContain('Accept');
      }
    },
  );

  test('is JSON for writes, with any Accept header', async () => {
    const reply = await open('/nothing', {}, 'POST');
    expect(reply.status).toBe(404);
    expect(await reply.json()).toMatchObject({ code: 404 });
  });
});

test('refusals of the API stay JSON for browsers', async () => {
  const app = await api.createApp();
  const reply = await open('/1.1/notifications/nothing', {
    'X-LC-Id': app.appId,
    'X-LC-Key': app.appKey,
  });
  expect(reply.status).toBe(404);
  expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
  expect(await reply.json()).toMatchObject({ code: 101 });
  expect((await open('/1.1/users')).headers.get('content-type')).toMatch(/^application\/json/);
});
