import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import {
  answerWith,
  startFunctionHost,
  type TestFunctionHost,
} from '../../support/servers/function-host.ts';
import { refusalOf, refused, signUp } from '../../support/users.ts';

/**
 * Tests refusals of function calls, and requests to the function host of an app
 * (protocol/functions.md#function-calls).
 */
let api: TestApi;
let host: TestFunctionHost;
let app: App;
/** Valid session token. */
let token: string;
let close: () => Promise<void>;

beforeAll(async () => {
  const database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
  host = await startFunctionHost();
  app = await api.createApp({ functionsUrl: `${host.url}/base` });
  host.answers.set('/base/1.1/functions/_ops/metadatas', answerWith(404, {}));
  token = (await signUp(api, app)).token;
  close = async () => {
    await api.close();
    await host.close();
    await database.drop();
  };
});
afterAll(() => close());

const call = (name: string, request: Parameters<TestApi['request']>[2] = {}) =>
  api.request('POST', `/1.1/functions/${name}`, { app, body: {}, ...request });

const on = (name: string, answer: Parameters<TestFunctionHost['answers']['set']>[1]) =>
  host.answers.set(`/base/1.1/functions/${name}`, answer);

const seen = () => host.requests.at(-1);

describe('refused without a request to the host', () => {
  test.each([
    ['no key', { app: undefined, headers: {} }],
    ['a wrong key', { app: { appId: 'unknown', appKey: 'x', masterKey: 'x' } }],
  ])('%s', async (_, request) => {
    const before = host.requests.length;
    expect(refusalOf(await call('hello', request as object))).toEqual(refused(401, 401));
    expect(host.requests.length).toBe(before);
  });

  test.each([
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '__defineGetter__',
    'prototype',
    ' ',
    'a%0d%0aX-LC-Hook-Key:%20x',
    'a%00b',
    'a%20b',
    'a%3fb',
    '1st',
    'x'.repeat(129),
  ])('the name %s, which no function can have', async (name) => {
    const before = host.requests.length;
    const reply = await call(name, { master: true });
    expect(reply.status).toBe(404);
    expect(reply.body.code).toSatisfy((code) => code === 1 || code === 404);
    expect(host.requests.length).toBe(before);
  });

  test('names of hooks and other internals with the app key', async () => {
    const before = host.requests.length;
    for (const name of ['__before_save_for__User', '_messageReceived', '__on_login__User'])
      expect(refusalOf(await call(name))).toEqual(refused(401, 401));
    const wrong = { headers: { 'X-LC-Hook-Key': app.masterKey } };
    expect(refusalOf(await call('_internal', wrong))).toEqual(refused(401, 401));
    expect(host.requests.length).toBe(before);
    expect(await call('_internal', { headers: { 'X-LC-Hook-Key': app.hookKey } })).toMatchObject({
      status: 200,
    });
    expect(seen()?.headers['x-lc-hook-key']).toBe(app.hookKey);
    expect(await call('_internal', { master: true })).toMatchObject({ status: 200 });
  });

  test('paths of hooks', async () => {
    for (const path of ['_User/beforeSave', 'onVerified/sms', '_User/onLogin'])
      expect(refusalOf(await call(path, { master: true }))).toEqual(refused(404, 404));
  });

  test('an app without a functions URL', async () => {
    const bare = await api.createApp();
    const reply = await call('hello', { app: bare });
    expect(refusalOf(reply)).toEqual(refused(1, 404));
    expect(reply.body.error).toContain('functionsUrl');
  });

  test('a body that is too long, by its Content-Length or by its content', async () => {
    const long = `{"a":"${'x'.repeat(21 * 1024 * 1024)}"}`;
    expect(refusalOf(await call('hello', { body: long }))).toEqual(refused(413, 413));
    const headers = { 'Content-Encoding': 'gzip', 'Content-Type': 'application/json' };
    const packed = await fetch(`${api.url}/1.1/functions/hello`, {
      method: 'POST',
      headers: { 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey, ...headers },
      body: gzipSync(long),
    });
    expect({ status: packed.status, body: await packed.json() }).toMatchObject({
      status: 413,
      body: { code: 413 },
    });
  });

  test('a body with an unknown encoding', async () => {
    for (const encoding of ['compress', 'constructor', 'gzip, gzip'])
      expect(refusalOf(await call('hello', { headers: { 'Content-Encoding': encoding } }))).toEqual(
        refused(415, 415),
      );
  });

  test('a body with a false Content-Encoding, even if no function reads it', async () => {
    const plain = await api.createApp();
    const headers = { 'Content-Encoding': 'gzip' };
    const before = host.requests.length;
    expect(refusalOf(await call('hello', { headers, body: 'no gzip' }))).toEqual(refused(107));
    // An unhandled error event would end the process, which is the test run.
    expect((await call('hello', { app: plain, headers, body: 'no gzip' })).status).toBeLessThan(
      500,
    );
    expect(host.requests.length).toBe(before);
  });

  test('the list of names, without the master key', async () => {
    const list = (master: boolean) =>
      api.request('GET', '/1.1/functions/_ops/metadatas', { app, master });
    expect(refusalOf(await list(false))).toEqual(refused(401, 401));
    host.answers.set('/base/1.1/functions/_ops/metadatas', answerWith(200, { result: ['hello'] }));
    expect(await list(true)).toMatchObject({ status: 200, body: { result: ['hello'] } });
  });

  test('a functions URL with a password, a query or a protocol other than HTTP', async () => {
    for (const functionsUrl of [
      'http://u:p@127.0.0.1/',
      'http://127.0.0.1/?a=1',
      'file:///etc/passwd',
      'x',
    ])
      expect(
        await api.request('PATCH', `/console/api/apps/${app.appId}`, {
          admin: true,
          body: { options: { functionsUrl } },
        }),
      ).toMatchObject({ status: 400 });
  });
});

describe('the request to the host has', () => {
  test('the path after the base URL, the unchanged body, and the caller', async () => {
    let body = '';
    on('hello', (request, response) => {
      void text(request).then((sent) => {
        body = sent;
        answerWith(200, { result: { n: 1 } })(request, response);
      });
    });
    const sent = '{"a": [1, {"__type":"Date","iso":"2026-01-01T00:00:00.000Z"}],  "__proto__": 1}';
    const headers = {
      'X-LC-Session': token,
      'X-LC-UA': 'LeanCloud-JS/4.15',
      'User-Agent': 'test',
    };
    const reply = await call('hello', { body: sent, headers });
    expect(reply).toMatchObject({ status: 200, body: { result: { n: 1 } } });
    expect(body).toBe(sent);
    expect(seen()).toMatchObject({ method: 'POST', path: '/base/1.1/functions/hello' });
    expect(seen()?.headers).toMatchObject({
      'x-lc-id': app.appId,
      'x-lc-key': app.appKey,
      'x-lc-session': token,
      'x-lc-prod': '1',
      'x-real-ip': '127.0.0.1',
      'x-lc-ua': 'LeanCloud-JS/4.15',
      'user-agent': 'test',
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(sent)),
    });
  });

  test('no session token if it is unknown or malformed', async () => {
    for (const unknown of ['abcdefghijklmnopqrstuvwxy', `${token}x`, '0', 'a b']) {
      const reply = await call('hello', { headers: { 'X-LC-Session': unknown } });
      expect(reply.status, unknown).toBe(200);
      expect(seen()?.headers['x-lc-session'], unknown).toBeUndefined();
    }
    await call('hello?session_token=abcdefghijklmnopqrstuvwxy', {
      headers: { 'X-LC-Session': token },
    });
    expect(seen()?.headers['x-lc-session']).toBeUndefined();
    await call(`hello?session_token=${token}`, { headers: { 'X-LC-Session': '0' } });
    expect(seen()?.headers['x-lc-session']).toBe(token);
  });

  test('no header of the caller that could change the request', async () => {
    await call('hello', {
      headers: {
        'X-LC-Hook-Key': 'guessed',
        'X-Real-IP': '9.9.9.9',
        'X-Forwarded-For': '9.9.9.9',
        Forwarded: 'for=9.9.9.9',
        'X-AVOSCloud-Master-Key': '',
        'X-Carillon-Functions-Token': 'guessed',
        Authorization: 'Bearer x',
        Cookie: 'a=b',
        'Proxy-Authorization': 'x',
        TE: 'trailers',
        'X-LC-Session': 'not a token',
      },
    });
    const names = Object.keys(seen()?.headers ?? {});
    expect(seen()?.headers['x-real-ip']).toBe('127.0.0.1');
    expect(seen()?.headers['x-forwarded-for']).toBe('127.0.0.1');
    for (const name of [
      'x-lc-hook-key',
      'forwarded',
      'x-avoscloud-master-key',
      'x-carillon-functions-token',
      'authorization',
      'cookie',
      'proxy-authorization',
      'te',
      'x-lc-session',
    ])
      expect(names, name).not.toContain(name);
  });

  test('the key, for the master key, signatures and old header names', async () => {
    await call('hello', { master: true });
    expect(seen()?.headers['x-lc-key']).toBe(`${app.masterKey},master`);
    await api.request('POST', '/1.1/call/hello', {
      headers: {
        'X-AVOSCloud-Application-Id': app.appId,
        'X-AVOSCloud-Application-Key': app.appKey,
        'X-AVOSCloud-Session-Token': token,
      },
      body: {},
    });
    expect(seen()?.path).toBe('/base/1.1/call/hello');
    expect(seen()?.headers).toMatchObject({
      'x-lc-key': app.appKey,
      'x-lc-session': token,
    });
  });

  test('the credentials of a text body as headers, not as arguments', async () => {
    let body = '';
    on('hello', (request, response) => {
      void text(request).then((sent) => {
        body = sent;
        answerWith(200, { result: 1 })(request, response);
      });
    });
    const reply = await call('hello', {
      app: undefined,
      headers: { 'Content-Type': 'text/plain' },
      body: JSON.stringify({
        _ApplicationId: app.appId,
        _ApplicationKey: app.appKey,
        _ApplicationProduction: 0,
        a: 1,
      }),
    } as object);
    expect(reply.status).toBe(200);
    expect(JSON.parse(body)).toEqual({ a: 1 });
    expect(seen()?.headers['x-lc-prod']).toBe('0');
  });

  test('the staging host for X-LC-Prod 0, or the production host without one', async () => {
    const staging = await startFunctionHost();
    const both = await api.createApp({ functionsUrl: host.url, functionsStagingUrl: staging.url });
    for (const [name, value] of [
      ['X-LC-Prod', '0'],
      ['X-Uluru-Application-Production', 'false'],
    ] as const)
      await call('stage', { app: both, headers: { [name]: value } });
    expect(staging.requests.map(({ headers }) => headers['x-lc-prod'])).toEqual(['0', '0']);
    const before = host.requests.length;
    for (const value of ['', '1', 'anything'])
      await call('stage', { app: both, headers: { 'X-LC-Prod': value } });
    expect(host.requests.length).toBe(before + 3);
    await call('stage', { headers: { 'X-LC-Prod': '0' } });
    expect(host.requests.length).toBe(before + 4);
    expect(staging.requests).toHaveLength(2);
    await staging.close();
  });

  test('a connection that many other calls share', async () => {
    const before = host.connections();
    for (let i = 0; i < 20; i += 1) expect(await call('again')).toMatchObject({ status: 200 });
    expect(host.connections() - before).toBeLessThanOrEqual(2);
  });
});

describe('the response of the host', () => {
  test.each([
    [400, { code: 1, error: 'no' }],
    [401, { code: 211, error: 'Verify sessionToken failed' }],
    [404, { code: 1, error: "No such cloud function 'x'" }],
    [422, { code: 4711, error: 'own' }],
    [500, { code: 1, error: 'broken' }],
    [503, { code: 124, error: 'The request timed out on the server.' }],
  ])('is passed on as an error: %i %j', async (status, body) => {
    on('fails', answerWith(status, body));
    expect(await call('fails')).toMatchObject({ status, body });
  });

  test('is forwarded unchanged with status 405 or 501', async () => {
    for (const status of [405, 501]) {
      const response = { code: 1, error: `of the host: ${status}` };
      on('strict', answerWith(status, response));
      expect(await call('strict')).toMatchObject({ status, body: response });
    }
  });

  test('is refused as a redirect, which is not followed', async () => {
    on('moved', answerWith(302, {}, { location: `${host.url}/base/1.1/functions/hello` }));
    const before = host.requests.length;
    expect(refusalOf(await call('moved'))).toEqual(refused(502, 502));
    expect(host.requests.length).toBe(before + 1);
  });

  test('is refused as a page with any status', async () => {
    const page = (status: number) =>
      answerWith(status, '<script>1</script>', { 'content-type': 'text/html' });
    for (const [status, code] of [
      [200, 502],
      [404, 502],
      [503, 503],
      [504, 524],
    ] as const) {
      on('page', page(status));
      expect(refusalOf(await call('page'))).toEqual(refused(code, code));
    }
  });

  test.each([
    ['no type', undefined],
    ['text', 'text/plain; charset=utf-8'],
    ['the type of PHP', 'application; charset=utf-8;'],
    ['a page', 'text/html'],
    ['a type of nothing', ''],
    ['bytes', 'application/octet-stream'],
  ])('is JSON by its text, with %s', async (_, type) => {
    for (const [status, body] of [
      [200, { result: { n: 1 } }],
      [200, {}],
      [400, { code: 4711, error: 'own' }],
      [500, { code: 1, error: 'broken' }],
    ] as const) {
      on('typed', (request, response) => {
        request.resume().once('end', () => {
          response.writeHead(status, type === undefined ? {} : { 'content-type': type });
          response.end(JSON.stringify(body));
        });
      });
      const reply = await call('typed');
      expect(reply).toMatchObject({ status, body });
      expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  test.each([
    ['nothing', ''],
    ['blanks', ' \n '],
    ['half a JSON text', '{"result": {"a": [1, 2'],
    ['a JSON text and more', '{"result": 1}{}'],
    ['a warning before the JSON', 'Notice: undefined index\n{"result": 1}'],
    ['half a large JSON text', `{"result": "${'x'.repeat(1024 * 1024)}`],
    ['JavaScript', "{'result': 1}"],
    ['NaN', '{"result": NaN}'],
  ])('is refused if it is %s, whatever its type and status', async (_, body) => {
    for (const type of ['application/json', 'text/plain'])
      for (const status of [200, 400, 500]) {
        on('half', answerWith(status, body, { 'content-type': type }));
        expect(refusalOf(await call('half')), `${type} ${status}`).toEqual(refused(502, 502));
      }
    const requests = [{ method: 'POST', path: '/1.1/functions/half', body: {} }];
    const batch = await api.request('POST', '/1.1/batch', { app, body: { requests } });
    expect(batch.body[0].error.code).toBe(502);
  });

  test('is refused if it is not UTF-8 or is cut off; a byte order mark is skipped', async () => {
    const answer = (bytes: Buffer, length = bytes.length) =>
      on('bytes', (request, response) => {
        request.resume().once('end', () => {
          response.writeHead(200, { 'content-length': length });
          response.write(bytes);
          if (length === bytes.length) response.end();
          else response.destroy();
        });
      });
    answer(Buffer.from([0x7b, 0x22, 0xc4, 0xe3, 0x22, 0x3a, 0x31, 0x7d]));
    expect(refusalOf(await call('bytes'))).toEqual(refused(502, 502));
    answer(Buffer.from('{"result": 1}'), 100);
    expect(refusalOf(await call('bytes'))).toEqual(refused(502, 502));
    answer(Buffer.from('\ufeff{"result": 1}'));
    expect(await call('bytes')).toMatchObject({ status: 200, body: { result: 1 } });
  });

  test('loses its headers', async () => {
    on(
      'headers',
      answerWith(
        200,
        { result: 1 },
        { 'set-cookie': 'a=b', 'x-lc-key': 'secret', 'retry-after': '7' },
      ),
    );
    const { headers } = await call('headers');
    expect(headers.get('set-cookie')).toBeNull();
    expect(headers.get('x-lc-key')).toBeNull();
    expect(headers.get('retry-after')).toBe('7');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  test('is forwarded whole if large, and refused above the limit', async () => {
    const piece = 'x'.repeat(64 * 1024);
    const large =
      (pieces: number) =>
      (
        request: Parameters<ReturnType<typeof answerWith>>[0],
        response: Parameters<ReturnType<typeof answerWith>>[1],
      ) => {
        request.resume();
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"result":"');
        let left = pieces;
        const more = () => {
          while (left > 0) {
            left -= 1;
            if (!response.write(piece)) return void response.once('drain', more);
          }
          response.end('"}');
        };
        more();
      };
    on('large', large(256));
    expect((await call('large')).body.result.length).toBe(256 * piece.length);
    on('large', large(1024));
    expect(refusalOf(await call('large'))).toEqual(refused(502, 502));
    on('large', answerWith(200, `"${'x'.repeat(20 * 1024 * 1024)}"`));
    expect(refusalOf(await call('large'))).toEqual(refused(502, 502));
  });

  test('is an error if cut off, unreachable, or if the URL points to this service', async () => {
    on('broken', (request) => void request.socket.destroy());
    expect(refusalOf(await call('broken'))).toEqual(refused(502, 502));
    const removed = await startFunctionHost();
    await removed.close();
    const orphan = await api.createApp({ functionsUrl: removed.url });
    const reply = await call('hello', { app: orphan });
    expect(refusalOf(reply)).toEqual(refused(503, 503));
    expect(reply.headers.get('retry-after')).not.toBeNull();
    const loop = await api.createApp({ functionsUrl: api.url });
    expect(refusalOf(await call('hello', { app: loop }))).toEqual(refused(502, 502));
  });
});

describe('two requests in one', () => {
  /** Sends raw bytes. Returns the whole response. */
  async function raw(lines: string[], body: string): Promise<string> {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`);
    return text(socket);
  }
  const head = () => [
    'POST /1.1/functions/smuggle HTTP/1.1',
    'Host: x',
    `X-LC-Id: ${app.appId}`,
    `X-LC-Key: ${app.appKey}`,
    'Content-Type: application/json',
  ];
  const hidden =
    'POST /base/1.1/functions/hidden HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

  test.each([
    ['both ways of telling a length', ['Content-Length: 4', 'Transfer-Encoding: chunked']],
    ['two lengths', ['Content-Length: 4', 'Content-Length: 100']],
    ['an unknown transfer encoding', ['Transfer-Encoding: xchunked']],
  ])('%s', async (_, more) => {
    const before = host.requests.length;
    const answer = await raw([...head(), ...more], `0\r\n\r\n${hidden}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(host.requests.length).toBe(before);
  });

  test('bytes after a body are not part of the forwarded request', async () => {
    const before = host.requests.length;
    const answer = await raw([...head(), 'Content-Length: 2'], `{}${hidden}`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(host.requests.slice(before).map(({ path }) => path)).toEqual([
      '/base/1.1/functions/smuggle',
    ]);
  });

  test('a chunked body is forwarded whole, but its trailers are not', async () => {
    const answer = await raw(
      [...head(), 'Connection: close', 'Transfer-Encoding: chunked', 'Trailer: X-LC-Hook-Key'],
      '2\r\n{}\r\n0\r\nX-LC-Hook-Key: x\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(seen()?.headers['x-lc-hook-key']).toBeUndefined();
    expect(seen()?.headers.trailer).toBeUndefined();
  });
});
