import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { startApi } from '../../../api/start.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

let app: App;

const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});

/** Route that needs the master key. */
const records = '/1.1/notifications';

describe('the text form', () => {
  const send = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    api.request('POST', path, {
      body,
      headers: { 'Content-Type': 'text/plain;charset=UTF-8', ...headers },
    });

  test('keys in the body replace headers, and _method replaces the method', async () => {
    const keysOf = { _ApplicationId: app.appId, _MasterKey: app.masterKey };
    const listed = await send(records, { ...keysOf, _method: 'GET', limit: 1 });
    expect({ status: listed.status, body: listed.body }).toEqual({
      status: 200,
      body: { results: [] },
    });
    const counted = await send(records, { ...keysOf, _method: 'get', count: 1, limit: '0' });
    expect(counted.body).toEqual({ results: [], count: 0 });
    const asClient = { _ApplicationId: app.appId, _ApplicationKey: app.appKey, _method: 'GET' };
    expect((await send(records, asClient)).status).toBe(403);
  });

  test('creates, reads and changes an object, without members with underscores', async () => {
    const keysOf = {
      _ApplicationId: app.appId,
      _ApplicationKey: app.appKey,
      _ClientVersion: 'js1',
      _SessionToken: 'x',
    };
    const created = await send('/1.1/installations', {
      ...keysOf,
      deviceType: 'android',
      installationId: 'text-form',
      team: 'red',
    });
    expect(created.status).toBe(201);
    const path = `/1.1/installations/${created.body.objectId}`;
    expect((await send(path, { ...keysOf, _method: 'PUT', team: 'blue' })).status).toBe(200);
    const { body } = await send(path, { ...keysOf, _method: 'GET' });
    expect(body).toMatchObject({ deviceType: 'android', team: 'blue' });
    expect(Object.keys(body).filter((key) => key.startsWith('_'))).toEqual([]);
  });

  test.each([
    ['no keys', {}, 401],
    ['a wrong key', { _ApplicationId: 'x', _ApplicationKey: 'y' }, 401],
    ['keys that are not a text', { _ApplicationId: {}, _ApplicationKey: [] }, 401],
    [
      'a text that could split a header',
      { _ApplicationId: 'a\r\nX-LC-Key: b', _ApplicationKey: 'y' },
      401,
    ],
    ['a list', [], 400],
    ['no JSON', 'hello', 400],
  ])('%s is refused', async (_case, body, status) => {
    expect((await send('/1.1/installations', body)).status).toBe(status);
  });

  test('with an invalid method stays a POST', async () => {
    const body = { _ApplicationId: app.appId, _MasterKey: app.masterKey, _method: 'TRACE' };
    expect((await send(records, body)).status).toBe(405);
  });
});

describe('browsers', () => {
  test('get every requested permission from the preflight, for a day', async () => {
    const headerNames =
      'content-type,x-lc-id,x-lc-sign,x-lc-session,x-lc-ua,x-lc-prod,x-lc-hook-key';
    const { status, headers } = await api.request('OPTIONS', '/1.1/push', {
      headers: {
        Origin: 'https://app.test',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': headerNames,
      },
    });
    expect(status).toBe(204);
    expect(headers.get('access-control-allow-origin')).toBe('https://app.test');
    expect(headers.get('access-control-max-age')).toBe('86400');
    expect(headers.get('access-control-allow-headers')).toBe(headerNames);
    for (const method of ['HEAD', 'GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect(headers.get('access-control-allow-methods')).toContain(method);
  });

  test('may read refusals too', async () => {
    for (const path of [records, '/nowhere']) {
      const { headers } = await api.request('GET', path, {
        headers: { Origin: 'https://app.test' },
      });
      expect(headers.get('access-control-allow-origin')).toBe('https://app.test');
    }
  });
});

describe('bodies', () => {
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    api.request('POST', '/1.1/installations', { app, body, headers });

  test.each([
    ['cut short', '{"deviceType":"ios"'],
    ['a list', '[]'],
    ['a number', '1'],
    ['a text', '"x"'],
    ['true', 'true'],
    ['two documents', '{}{}'],
    ['a comment', '{/*x*/}'],
    ['nothing but NUL', '\u0000'],
  ])('%s: 400, code 107', async (_case, body) => {
    const reply = await post(body);
    expect({ status: reply.status, code: reply.body.code }).toEqual({ status: 400, code: 107 });
  });

  test('a body above 20 MB: 413', async () => {
    const { status, body } = await post(`{"x":"${'y'.repeat(20 * 1024 * 1024)}"}`);
    expect({ status, code: body.code }).toEqual({ status: 413, code: 413 });
  });

  test('a body in an unsupported encoding: 415', async () => {
    const { status, body } = await post('{}', { 'Content-Encoding': 'pony' });
    expect({ status, code: body.code }).toEqual({ status: 415, code: 415 });
  });

  test.each([
    'application/json; charset=UTF-8',
    'application/octet-stream',
    'application/x-www-form-urlencoded',
    '',
  ])('JSON is read with any content type: %j', async (type) => {
    const reply = await post('{"deviceType":"android","installationId":"types"}', {
      'Content-Type': type,
    });
    expect([200, 201]).toContain(reply.status);
  });

  test('keys are checked before the body', async () => {
    const { status } = await api.request('POST', '/1.1/installations', { body: '{' });
    expect(status).toBe(401);
  });

  test('an aborted request does not affect others', async () => {
    const { hostname, port } = new URL(api.url);
    const headers = { 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey, 'Content-Length': '100' };
    await new Promise<void>((resolve) => {
      const broken = httpRequest({
        hostname,
        port,
        method: 'POST',
        path: '/1.1/installations',
        headers,
      });
      broken.on('error', () => resolve());
      broken.write('{"dev', () => broken.destroy(new Error('gone')));
    });
    expect((await api.request('GET', '/healthz')).status).toBe(200);
  });
});

describe('paths', () => {
  test.each([
    ['GET', '/', 404],
    ['GET', '/1.1/nothing', 404],
    ['GET', '/1.1/%E0%A4%A', 404],
    ['PATCH', '/1.1/push', 405],
    ['PROPFIND', '/1.1/push', 405],
    ['GET', '/1.1/push', 405],
    ['GET', '/1.1/notifications/%E0%A4%A', 404],
    ['GET', '/1.1/notifications/%00', 404],
  ])('%s %s: %d in JSON', async (method, path, status) => {
    const reply = await api.request(method, path, { app, master: true });
    expect(reply.body).toEqual({ code: expect.any(Number), error: expect.stringMatching(/\w/) });
    expect(reply.status).toBe(status);
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
  });
});

describe('the text of a refusal', () => {
  const english = 'Could not find user.';
  const wrong = (headers: Record<string, string>) =>
    api.request('POST', '/1.1/login', {
      app,
      headers,
      body: { username: 'unknown', password: 'p' },
    });

  test.each([
    ['zh-CN,zh;q=0.9,en;q=0.8', '用户不存在。'],
    ['zh-Hans-CN', '用户不存在。'],
    ['en-US,en;q=0.9,zh-CN;q=0.8', english],
    ['de', english],
    ['*', english],
    ['"><script>', english],
  ])('for %s are %s; the code stays', async (language, error) => {
    const { status, headers, body } = await wrong({ 'Accept-Language': language });
    expect([status, body]).toEqual([400, { code: 211, error }]);
    expect(headers.get('vary')).toMatch(/Accept-Language/);
  });

  test('is English if it is more specific than the table', async () => {
    const headers = { 'Accept-Language': 'zh' };
    const body = { mobilePhoneNumber: '13800138000', ttl: 31 };
    const own = await api.request('POST', '/1.1/requestSmsCode', { app, headers, body });
    expect(own.body).toEqual({ code: 1, error: 'ttl: expected 1 to 30 minutes' });
    const keys = await api.request('GET', '/1.1/users', { headers });
    expect(keys.body).toEqual({ code: 401, error: 'Unauthorized.' });
  });

  test('is in Chinese for operators who request it, with its values', async () => {
    const ask = (language: string) =>
      api.request('GET', '/console/api/queues/none/jobs', {
        admin: true,
        headers: { 'Accept-Language': language },
      });
    expect((await ask('en')).body).toEqual({ code: 404, error: 'There is no such queue.' });
    expect((await ask('zh')).body).toEqual({ code: 404, error: '没有此队列。' });
    const missing = await api.request('GET', '/console/api/none', {
      admin: true,
      headers: { 'Accept-Language': 'zh' },
    });
    expect(missing.body).toEqual({ code: 404, error: '不存在。' });
  });
});

describe('the log', () => {
  test('has one line at level info for a refused request, without its values', async () => {
    const lines: string[] = [];
    const log = createLogger({
      level: 'info',
      name: 'api',
      destination: { write: (line) => lines.push(line) },
    });
    const logged = await startApi(testConfig(api.databaseUrl), log);
    const base = `http://127.0.0.1:${logged.port}`;
    const { adminToken } = testConfig(api.databaseUrl);
    const keys = {
      'X-LC-Id': app.appId,
      'X-LC-Key': app.appKey,
      Authorization: `Bearer ${adminToken}`,
    };
    const calls: [string, string, string | null][] = [
      ['POST', '/1.1/installations', '{"deviceToken":"SESAME"'],
      ['POST', '/1.1/installations', '{"deviceToken":"SESAME"}'],
      ['GET', '/1.1/notifications?where=SESAME', null],
      ['GET', '/SESAME', null],
      ['PUT', '/console/api/apps/SESAME/profiles/apns/_default', '{"privateKey":"SESAME"}'],
      ['PUT', `/console/api/apps/${app.appId}/profiles/apns/_default`, '{"privateKey":"SESAME"}'],
    ];
    lines.length = 0;
    for (const [method, path, body] of calls) {
      const response = await fetch(base + path, { method, headers: keys, body });
      expect(response.status).toBeLessThan(500);
      expect(response.ok).toBe(false);
      await response.text();
    }
    await logged.stack.close();
    const requests = lines.filter((line) => line.includes('request refused'));
    expect(requests.map((line) => JSON.parse(line).level)).toEqual(calls.map(() => 'info'));
    expect(lines).toEqual(requests);
    expect(lines.join('')).not.toMatch(new RegExp(`SESAME|${app.appKey}|${adminToken}`));
  });
});
