import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import { RawRequest } from '../../support/raw-request.ts';
import { startFunctionHost, type TestFunctionHost } from '../../support/servers/function-host.ts';
import { refusalOf, refused } from '../../support/users.ts';

/** Tests the limits on the size and content of bodies. */
let api: TestApi;
let app: App;
let host: TestFunctionHost;
let close: () => Promise<void>;
/** Api with a short timeout for bodies. */
let hasty: TestApi;

beforeAll(async () => {
  const database = await createTestDatabase();
  api = await startTestApi({ databaseUrl: database.url });
  hasty = await startTestApi({ databaseUrl: database.url, bodyLimits: { bodyMs: 100 } });
  host = await startFunctionHost();
  app = await api.createApp({ functionsUrl: host.url, installationBytes: 128 * kb });
  close = async () => {
    await api.close();
    await hasty.close();
    await host.close();
    await database.drop();
  };
});
afterAll(() => close());

const kb = 1024;
const mb = 1024 * kb;
const keys = () => [`X-LC-Id: ${app.appId}`, `X-LC-Key: ${app.appKey}`];
const open = (path: string, headers: string[] = [], url = api.url) =>
  new RawRequest(url, [`POST ${path} HTTP/1.1`, 'Host: x', ...headers]);
const chunked = 'Transfer-Encoding: chunked';

const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const page = '/1.1/resetPassword/aaaaaaaaaaaaaaaa';

describe('without a valid key', () => {
  test.each([
    ['no key', []],
    ['a wrong key', ['X-LC-Id: unknown', 'X-LC-Key: x']],
  ])('%s is refused before the body is sent', async (_, headers) => {
    for (const path of [
      '/1.1/batch',
      '/1.1/push',
      '/1.1/users',
      '/1.1/functions/a',
      '/1.1/installations',
    ]) {
      const request = open(path, [...headers, 'Content-Length: 20000000']);
      expect(await request.answer()).toMatchObject({ status: 401, body: { code: 401 } });
      request.end();
    }
  });

  test('a call without the operator’s token and a wrong callback secret, too', async () => {
    for (const [path, status] of [
      ['/console/api/apps', 401],
      ['/callbacks/vendor_b/unknown/x', 404],
    ] as const) {
      const request = open(path, ['Content-Length: 2000000', 'Content-Encoding: gzip']);
      expect(await request.answer()).toMatchObject({ status, body: { code: status } });
      request.end();
    }
  });

  test.each([
    ['a page', page, 'application/x-www-form-urlencoded'],
    ['the text form', '/1.1/users', 'text/plain'],
  ])('%s accepts no compressed body: 415 before the body is sent', async (_, path, type) => {
    for (const encoding of ['gzip', 'deflate', 'br', 'GZIP', 'pony']) {
      const request = open(path, [
        `Content-Type: ${type}`,
        `Content-Encoding: ${encoding}`,
        'Content-Length: 20000',
      ]);
      expect(await request.answer()).toMatchObject({ status: 415, body: { code: 415 } });
      request.end();
    }
  });

  test('a page accepts 16 KB: more is refused unread, or at the limit in chunks', async () => {
    const announced = open(page, [`Content-Length: ${16 * kb + 1}`]);
    expect(await announced.answer()).toMatchObject({ status: 413, body: { code: 413 } });
    announced.end();
    const growing = open(page, [chunked]);
    const refusal = growing.answer();
    growing.chunk('x'.repeat(8 * kb)).chunk('x'.repeat(8 * kb + 1));
    expect(await refusal).toMatchObject({ status: 413, body: { code: 413 } });
    growing.end();
    const largest = await api.request('POST', page, { body: `{"a":"${'x'.repeat(16 * kb - 8)}"}` });
    expect(largest.status).toBeLessThan(413);
  });
});

describe('the text form', () => {
  const send = (path: string, text: string) =>
    api.request('POST', path, { headers: { 'Content-Type': 'text/plain' }, body: text });
  const large = { deviceType: 'android', installationId: 'text-large', note: 'x'.repeat(100 * kb) };
  const credentials = () => ({ _ApplicationId: app.appId, _ApplicationKey: app.appKey });

  test('is read beyond 16 KB if it starts with valid keys', async () => {
    const created = await send(
      '/1.1/installations',
      JSON.stringify({ ...credentials(), ...large, _ClientVersion: 'js' }),
    );
    expect(created.status).toBe(201);
    const path = `/1.1/installations/${created.body.objectId}`;
    const put = {
      _method: 'PUT',
      ...credentials(),
      note: 'y'.repeat(50 * kb),
      _InstallationId: 'i',
    };
    expect((await send(path, JSON.stringify(put, undefined, 1))).status).toBe(200);
    const { body } = await api.request('GET', path, { app });
    expect(body.note).toBe(put.note);
    expect(Object.keys(body).filter((name) => name.startsWith('_'))).toEqual([]);
  });

  test.each([
    [
      'wrong keys first',
      () => ({ _ApplicationId: app.appId, _ApplicationKey: 'x', ...large }),
      refused(401, 401),
    ],
    ['keys at the end', () => ({ ...large, ...credentials() }), refused(413, 413)],
    ['no keys', () => large, refused(413, 413)],
    ['a query', () => ({ _method: 'GET', ...credentials(), ...large }), refused(413, 413)],
  ])('is refused beyond 16 KB with %s', async (_, body, refusal) => {
    expect(refusalOf(await send('/1.1/installations', JSON.stringify(body())))).toEqual(refusal);
  });

  test('has the limits of the call that it replaces', async () => {
    const login = { ...credentials(), username: 'x'.repeat(20 * kb), password: 'p' };
    expect(refusalOf(await send('/1.1/login', JSON.stringify(login)))).toEqual(refused(413, 413));
    const push = {
      _ApplicationId: app.appId,
      _MasterKey: app.masterKey,
      data: { alert: 'x'.repeat(5000) },
    };
    expect(refusalOf(await send('/1.1/push', JSON.stringify(push)))).toEqual(refused(116));
  });
});

describe('with a key', () => {
  /**
   * Fast compression. The best quality takes seconds, in which idle connections of this process
   * would close.
   */
  const brotli = (text: string) =>
    brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  const packers = {
    gzip: (text: string) => gzipSync(text),
    deflate: (text: string) => deflateSync(text),
    br: brotli,
  };

  test.each([
    ['/1.1/login', 16 * kb + 1, refused(413, 413)],
    ['/1.1/requestSmsCode', 16 * kb + 1, refused(413, 413)],
    ['/1.1/installations', 128 * kb, refused(116)],
    ['/1.1/users', mb, refused(116)],
    ['/1.1/roles', 2 * mb, refused(116)],
    ['/1.1/push', 4 * kb, refused(116)],
    ['/1.1/batch', 20 * mb, refused(413, 413)],
  ])(
    '%s accepts less than %d bytes, announced, chunked or unpacked',
    async (path, limit, refusal) => {
      const master = { ...app, appKey: `${app.masterKey},master` };
      const text = `{"a":"${'x'.repeat(limit - 8)}"}`;
      expect(Buffer.byteLength(text)).toBe(limit);
      const announced = open(path, [
        ...keys().slice(0, 1),
        `X-LC-Key: ${master.appKey}`,
        `Content-Length: ${limit}`,
      ]);
      const { status, body } = await announced.answer();
      expect({ status, code: body.code, error: typeof body.error }).toEqual(refusal);
      announced.end();
      for (const [encoding, pack] of Object.entries(packers)) {
        const response = await fetch(api.url + path, {
          method: 'POST',
          headers: {
            'X-LC-Id': app.appId,
            'X-LC-Key': master.appKey,
            'Content-Encoding': encoding,
          },
          body: pack(text),
        });
        expect(
          refusalOf({
            status: response.status,
            headers: response.headers,
            body: await response.json(),
          }),
        ).toEqual(refusal);
      }
      const fits = await api.request('POST', path, {
        app,
        master: true,
        body: `{"a":"${'x'.repeat(limit - 9)}"}`,
      });
      expect([413, 116]).not.toContain(fits.body.code);
    },
  );

  test('compressed bodies are read in every supported encoding', async () => {
    for (const [encoding, pack] of Object.entries(packers)) {
      const response = await fetch(`${api.url}/1.1/installations`, {
        method: 'POST',
        headers: { 'X-LC-Id': app.appId, 'X-LC-Key': app.appKey, 'Content-Encoding': encoding },
        body: pack(JSON.stringify({ deviceType: 'android', installationId: `packed-${encoding}` })),
      });
      expect(response.status).toBe(201);
    }
    const broken = await api.request('POST', '/1.1/installations', {
      app,
      headers: { 'Content-Encoding': 'gzip' },
      body: '{}',
    });
    expect(refusalOf(broken)).toEqual(refused(107));
  });

  test('an endless series of empty compressed chunks is cut off', async () => {
    const request = open('/1.1/login', [...keys(), 'Content-Encoding: gzip', chunked]);
    const refusal = request.answer();
    const nothing = gzipSync('');
    for (let sent = 0; sent < 200 * kb; sent += 20 * kb)
      request.chunk(Buffer.concat(Array(kb).fill(nothing)));
    expect(await refusal).toMatchObject({ status: 413 });
    request.end();
  });

  test('a batch of nearly 20 MB works', async () => {
    const note = 'x'.repeat(100 * kb);
    const requests = Array.from({ length: 190 }, (_, i) => ({
      method: 'POST',
      path: '/1.1/installations',
      body: { deviceType: 'android', installationId: `large-${i}`, note },
    }));
    const { status, body } = await api.request('POST', '/1.1/batch', { app, body: { requests } });
    expect(status).toBe(200);
    expect(body.filter((one: object) => 'success' in one)).toHaveLength(190);
  });
});

describe('the content of a body', () => {
  const inBatch = (item: object) =>
    api.request('POST', '/1.1/batch', { app, master: true, body: { requests: [item] } });
  /**
   * Replaces a placeholder in the text, because JSON.stringify would overflow on such a deep value.
   */
  const withDeep = (value: object) => JSON.stringify(value).replace('"DEEP"', deep(200_000));

  test.each([
    ['as a whole', '/1.1/installations', deep(200_000)],
    ['in a member', '/1.1/users', withDeep({ username: 'a', password: 'b', a: 'DEEP' })],
    ['in a push', '/1.1/push', withDeep({ data: { alert: 'a' }, where: 'DEEP' })],
    [
      'in a batch',
      '/1.1/batch',
      withDeep({ requests: [{ method: 'POST', path: '/1.1/users', body: { a: 'DEEP' } }] }),
    ],
    [
      'in params of a batch',
      '/1.1/batch',
      withDeep({ requests: [{ method: 'GET', path: '/1.1/users', params: { where: 'DEEP' } }] }),
    ],
    [
      'in a batch to save',
      '/1.1/batch/save',
      withDeep({ requests: [{ method: 'POST', path: '/1.1/users', body: 'DEEP' }] }),
    ],
    ['in arguments of a function', '/1.1/functions/hello', deep(200_000)],
    ['in typed arguments of a function', '/1.1/call/hello', withDeep({ a: 'DEEP' })],
    ['101 deep', '/1.1/batch', JSON.stringify({ requests: 'DEEP' }).replace('"DEEP"', deep(100))],
  ])('may be at most 100 deep: %s', async (_, path, body) => {
    const before = host.requests.length;
    const reply = await api.request('POST', path, { app, master: true, body });
    expect([107, 116]).toContain(reply.body.code);
    expect(reply.status).toBe(400);
    expect(host.requests.length).toBe(before);
  });

  test('in the text form too', async () => {
    const body = `{"_ApplicationId":"${app.appId}","_ApplicationKey":"${app.appKey}","a":${deep(1000)}}`;
    const reply = await api.request('POST', '/1.1/installations', {
      headers: { 'Content-Type': 'text/plain' },
      body,
    });
    expect(refusalOf(reply)).toEqual(refused(107));
  });

  test('deep texts of queries are 102 or 107, also through a batch', async () => {
    const text = deep(1500);
    const where = deep(200_000);
    const cql = 'select * from _User where a = ?';
    const pvalues = encodeURIComponent(`[${text}]`);
    const codes = [
      (await api.request('GET', `/1.1/users?where=${text}`, { app, master: true })).body.code,
      (await api.request('GET', `/1.1/users?where=${text}&order=${text}`, { app, master: true }))
        .body.code,
      (
        await api.request(
          'GET',
          `/1.1/cloudQuery?cql=${encodeURIComponent(cql)}&pvalues=${pvalues}`,
          {
            app,
            master: true,
          },
        )
      ).body.code,
      (await inBatch({ method: 'GET', path: '/1.1/users', params: { where } })).body[0].error.code,
      (
        await inBatch({
          method: 'GET',
          path: '/1.1/cloudQuery',
          params: { cql, pvalues: `[${where}]` },
        })
      ).body[0].error.code,
      (
        await inBatch({
          method: 'POST',
          path: '/1.1/push',
          body: { data: { alert: 'a' }, where: deep(1500) },
        })
      ).body[0].error.code,
    ];
    for (const code of codes) expect([102, 107]).toContain(code);
  });

  test('may have at most 250,000 values: 20 MB of lists are refused before parsing', async () => {
    const lists = `{"requests":[${'[],'.repeat(6_900_000)}0]}`;
    expect(refusalOf(await api.request('POST', '/1.1/batch', { app, body: lists }))).toEqual(
      refused(107),
    );
    expect(
      refusalOf(
        await api.request('POST', '/1.1/functions/a', { app, body: `[${'{},'.repeat(300_000)}0]` }),
      ),
    ).toEqual(refused(107));
    const rich = { requests: [], more: Array(200_000).fill(1) };
    expect((await api.request('POST', '/1.1/batch', { app, body: rich })).body).toEqual([]);
  });

  test('a function response in a batch that is too deep returns 502', async () => {
    host.answers.set('/1.1/functions/deep', (request, response) => {
      request.resume().once('end', () => {
        response
          .writeHead(200, { 'Content-Type': 'application/json' })
          .end(`{"result":${deep(200_000)}}`);
      });
    });
    const { body } = await inBatch({ method: 'POST', path: '/1.1/functions/deep', body: {} });
    expect(body[0].error.code).toBe(502);
  });
});

describe('a malformed body', () => {
  test.each(['null', '', '   ', '[]', '"x"', '1', '{'])('is 107 for a push: %j', async (body) => {
    for (const path of ['/1.1/push', '/1.1/push/devices'])
      expect(refusalOf(await api.request('POST', path, { app, master: true, body }))).toEqual(
        refused(107),
      );
  });

  test('is 107 for a push in a batch too', async () => {
    const requests = [
      { method: 'POST', path: '/1.1/push' },
      { method: 'POST', path: '/1.1/push', body: null },
    ];
    const { body } = await api.request('POST', '/1.1/batch', {
      app,
      master: true,
      body: { requests },
    });
    expect(body.map((one: { error: { code: number } }) => one.error.code)).toEqual([107, 107]);
  });

  test('null counts as no body only for calls without a body', async () => {
    for (const path of ['/1.1/installations', '/1.1/users', '/1.1/login', '/1.1/batch'])
      expect(refusalOf(await api.request('POST', path, { app, body: 'null' }))).toEqual(
        refused(107),
      );
    const refresh = await api.request('PUT', `/1.1/users/${'a'.repeat(24)}/refreshSessionToken`, {
      app,
      body: 'null',
    });
    expect(refresh.body.code).toBe(206);
  });

  test.each(['hello', '{', '{"a":1}}', "{'a':1}", 'a=1&b=2', '\u0000'])(
    '%j is no valid argument, and the host gets no request',
    async (body) => {
      const before = host.requests.length;
      for (const path of ['/1.1/functions/hello', '/1.1/call/hello'])
        for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/html'])
          expect(
            refusalOf(
              await api.request('POST', path, { app, body, headers: { 'Content-Type': type } }),
            ),
          ).toEqual(refused(107));
      expect(host.requests.length).toBe(before);
    },
  );

  test.each(['', '{}', '[1]', '"x"', 'null', '1'])('%j is a valid argument', async (body) => {
    expect((await api.request('POST', '/1.1/functions/hello', { app, body })).status).toBe(200);
  });
});

describe('a body that does not arrive', () => {
  test('is refused after its timeout: 408, and the connection is closed', async () => {
    for (const head of [keys(), [...keys(), 'Content-Encoding: gzip']]) {
      const request = open('/1.1/installations', [...head, 'Content-Length: 1000'], hasty.url);
      request.socket.write('{');
      const reply = await request.reply;
      expect(reply).toMatch(
        /^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*\{"code":408,"error":"[^"]+"\}$/i,
      );
    }
    for (const [path, type] of [
      [page, 'application/x-www-form-urlencoded'],
      ['/1.1/login', 'text/plain'],
    ]) {
      const request = open(path ?? '', [`Content-Type: ${type}`, chunked], hasty.url);
      request.chunk('{');
      expect(await request.reply).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":408/);
    }
  });
});

describe('an invalid request', () => {
  test.each([
    ['no host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['garbage', 'hello\r\n\r\n', 400],
    ['endless headers', `GET / HTTP/1.1\r\nX: ${'x'.repeat(100 * kb)}\r\n\r\n`, 431],
  ])('%s gets a code and a message', async (_, text, status) => {
    const reply = await new RawRequest(api.url, [text]).reply;
    expect(reply).toMatch(
      new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*\\{"code":${status},"error":"[^"]+"\\}$`),
    );
  });
});
