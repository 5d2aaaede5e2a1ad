import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newUid, refusalOf, refused, signUp } from '../../support/users.ts';

/** Replies of a platform to the next requests: status, headers and body. */
interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body: unknown;
}

let url = '';
let app: App;
let platformRequests: {
  path: string;
  query: URLSearchParams;
  authorization: string | undefined;
}[] = [];
let answers: (request: { path: string; query: URLSearchParams; body: string }) => Answer;

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '', url);
  let sent = '';
  for await (const chunk of request) sent += chunk;
  platformRequests.push({
    path: pathname,
    query: searchParams,
    authorization: request.headers.authorization,
  });
  const {
    status = 200,
    headers,
    body,
  } = answers({ path: pathname, query: searchParams, body: sent });
  response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
}
const server = createServer((request, response) => void serve(request, response));

const api = useTestApi();
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const program = { endpoint: url, appId: 'ours', appSecret: 'SESAME' };
  app = await api.createApp({
    authPlatforms: {
      weixin: { endpoint: url },
      qq: { endpoint: url, appId: 'ours' },
      weibo: { endpoint: url, appId: 'ours' },
      taptap: { endpoint: url, clientId: 'ours' },
      lc_weapp: program,
      lc_qqapp: program,
    },
  });
});
afterAll(() => void server.close());

const loginByPlatform = (authData: object, query = '') =>
  api.request('POST', `/1.1/users${query}`, { app, body: { authData } });
const always = (answer: Answer) => {
  platformRequests = [];
  answers = () => answer;
};

const union = { unionid: 'u', platform: 'weixin', main_account: true };
const tapTap = (openid: string) => ({
  openid,
  kid: 'a-kid',
  access_token: 'a-kid',
  token_type: 'mac',
  mac_key: 'a-key',
  mac_algorithm: 'hmac-sha-1',
});

/**
 * For each platform and call: an entry, the platform's reply to a wrong credential, and the code of
 * the refusal.
 */
const platforms = [
  {
    name: 'weixin',
    entry: () => ({ openid: newUid(), access_token: 't' }),
    no: [40001, 40003, 40014, 41001, 42001].map((errcode) => ({ errcode, errmsg: 'x' })),
    unknown: [-1, 45009, 45011, 40013, 50002, 99999].map((errcode) => ({ errcode, errmsg: 'x' })),
    code: 252,
  },
  {
    name: 'weixin',
    entry: () => ({ openid: newUid(), access_token: 't', ...union }),
    no: [{ errcode: 40001 }, { errcode: '40003' }, { openid: 'another', unionid: 'u' }],
    unknown: [{ errcode: -1 }, { errcode: 45009 }, { errcode: 0 }, { unionid: 'u' }],
    code: 252,
  },
  {
    name: 'qq',
    entry: () => ({ openid: newUid(), access_token: 't' }),
    no: [
      ...[100013, 100014, 100015, 100016].map((error) => ({ error, error_description: 'x' })),
      'callback( {"error":100016,"error_description":"x"} );\n',
      { client_id: 'ours', openid: 'another' },
      { client_id: 'another', openid: 'another' },
    ],
    unknown: [{ error: -1 }, { error: 100000 }, { ret: 1002 }, { client_id: 'ours' }],
    code: 251,
  },
  {
    name: 'weibo',
    entry: () => ({ uid: newUid(), access_token: 't' }),
    no: [
      ...[21314, 21315, 21316, 21317, 21327, 21332].map((error_code) => ({
        error: 'x',
        error_code,
      })),
      { uid: 'another', appkey: 'ours', expire_in: 60 },
    ],
    unknown: [10001, 10009, 10022, 10023, 21321].map((error_code) => ({ error: 'x', error_code })),
    code: 251,
  },
  {
    name: 'taptap',
    entry: () => tapTap(newUid()),
    no: [
      ...['access_denied', 'insufficient_scope', 'invalid_grant'].map((error) => ({
        success: false,
        data: { code: -1, error },
      })),
      { success: true, data: { openid: 'another' } },
    ],
    unknown: ['server_error', 'invalid_time', 'invalid_client', 'too_many'].map((error) => ({
      success: false,
      data: { code: -1, error },
    })),
    code: 251,
  },
  ...['lc_weapp', 'lc_qqapp'].map((name) => ({
    name,
    entry: () => ({ code: 'a-code' }),
    no: [40029, 40163, 40226].map((errcode) => ({ errcode, errmsg: 'x' })),
    unknown: [
      { errcode: -1 },
      { errcode: 45011 },
      { errcode: 40013 },
      { errcode: 40125 },
      { openid: 'x' },
    ],
    code: 251,
  })),
];

describe.each(platforms)('$name ($code)', ({ name, entry, no, unknown, code }) => {
  test('refuses an entry only for listed codes, with any permanent status', async () => {
    for (const body of no)
      for (const status of [200, 400, 401]) {
        if (status !== 200 && (typeof body === 'string' || !/err|false/.test(JSON.stringify(body))))
          continue;
        always({ status, body });
        expect([body, status, refusalOf(await loginByPlatform({ [name]: entry() }))]).toEqual([
          body,
          status,
          refused(code),
        ]);
      }
  });

  test('causes 503 with Retry-After for any other reply', async () => {
    const [refusal] = no;
    const other: Answer[] = [
      ...unknown.map((body) => ({ body })),
      ...[408, 425, 429, 500, 502, 503].map((status) => ({ status, body: refusal })),
      ...[200, 302, 400, 401, 403, 404].map((status) => ({ status, body: '<html>Blocked</html>' })),
      ...['', '[]', '"no"', 'null', '{', {}, { error: 'not_found' }].map((body) => ({ body })),
      { status: 401, body: { error: 'Unauthorized' } },
      { status: 403, body: { code: 403, message: 'Forbidden' } },
    ];
    for (const answer of other) {
      always(answer);
      const reply = await loginByPlatform({ [name]: entry() });
      expect([answer, reply.status, reply.body.code]).toEqual([answer, 503, 503]);
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThanOrEqual(5);
      expect(JSON.stringify(reply.body)).not.toMatch(/SESAME|a-code|a-key/);
    }
  });
});

test("passes the platform's Retry-After on, within limits", async () => {
  for (const [sent, expected] of [
    ['0', '5'],
    ['60', '60'],
    ['1.5', '5'],
    ['86400', '300'],
  ]) {
    always({ status: 429, headers: { 'retry-after': String(sent) }, body: {} });
    const reply = await loginByPlatform({ qq: { openid: newUid(), access_token: 't' } });
    expect([sent, reply.status, reply.headers.get('retry-after')]).toEqual([sent, 503, expected]);
  }
});

describe.each(['lc_weapp', 'lc_qqapp'])('the code of %s', (name) => {
  /** Starts a platform on which each code belongs to one account and can be used once. */
  const sessions = (openid: string, more: object = {}) => {
    const used = new Set<string>();
    platformRequests = [];
    answers = ({ path, query }) => {
      const code = query.get('js_code') ?? '';
      const isRight =
        path === '/sns/jscode2session' && query.get('secret') === 'SESAME' && !used.has(code);
      used.add(code);
      return {
        body: isRight ? { openid, session_key: 'SESAME-key', ...more } : { errcode: 40163 },
      };
    };
  };
  const code = () => ({ [name]: { code: newUid() } });

  test('signs up and logs in with the account that the code was exchanged for', async () => {
    const openid = newUid();
    sessions(openid);
    expect((await loginByPlatform(code(), '?failOnNotExist=true')).body.code).toBe(211);
    const first = await loginByPlatform(code());
    expect([first.status, first.body.authData]).toEqual([201, { [name]: { openid } }]);
    const sent = code();
    const second = await loginByPlatform(sent);
    expect([second.status, second.body.objectId]).toEqual([200, first.body.objectId]);
    expect([...(platformRequests.at(-1)?.query ?? [])]).toEqual([
      ['appid', 'ours'],
      ['secret', 'SESAME'],
      ['js_code', Object.values(sent)[0]?.code],
      ['grant_type', 'authorization_code'],
    ]);
    // Each call exchanges its code once. A used code proves nothing.
    expect(platformRequests).toHaveLength(3);
    expect(refusalOf(await loginByPlatform(sent))).toEqual(refused(251));
    const path = `/1.1/users/${first.body.objectId}`;
    const { body } = await api.request('GET', path, { app, master: true });
    expect(body.authData).toEqual({ [name]: { openid, session_key: 'SESAME-key' } });
    const { rows } = await api.db.query(
      'SELECT auth_data::text AS a FROM app_user WHERE object_id = $1',
      [first.body.objectId],
    );
    expect(rows[0]).toEqual({ a: expect.not.stringMatching(/SESAME/) });
  });

  test('links the account, also by its path and in a batch', async () => {
    for (const body of [{ authData: code() }, { [`authData.${name}`]: Object.values(code())[0] }]) {
      const openid = newUid();
      sessions(openid);
      const user = await signUp(api, app);
      const linked = await user.put(body, '?new=true');
      expect([linked.status, linked.body.authData]).toEqual([200, { [name]: { openid } }]);
      // The entry in its shown form changes nothing and causes no request.
      expect((await user.put({ authData: linked.body.authData })).status).toBe(200);
      expect(platformRequests).toHaveLength(1);
      const requests = [{ method: 'POST', path: '/1.1/users', body: { authData: code() } }];
      const [reply] = (await api.request('POST', '/1.1/batch', { app, body: { requests } })).body;
      expect(reply.success.objectId).toBe(user.id);
    }
  });

  test('never enters another account than its own', async () => {
    const [own, victim] = [newUid(), newUid()];
    sessions(victim);
    const target = await loginByPlatform(code());
    sessions(own);
    const claims = [
      { code: newUid(), openid: victim },
      { code: newUid(), uid: victim },
      { code: newUid(), uid: victim, openid: own },
      { openid: victim },
      { uid: victim, access_token: 't' },
      { openid: victim, session_key: 'SESAME-key', identity_token: 'a.b.c' },
      { code: '' },
      { code: null, openid: victim },
      { code: '', uid: victim },
    ];
    for (const claim of claims) {
      const { status, body } = await loginByPlatform({ [name]: claim });
      expect([claim, status]).toEqual([claim, 400]);
      expect([250, 251]).toContain(body.code);
    }
    expect((await loginByPlatform({ [name]: { code: 5 } })).body.code).toBe(111);
    expect((await loginByPlatform({ [name]: { code: { $ne: 1 } } })).body.code).toBe(121);
    const same = await loginByPlatform({ [name]: { code: newUid(), openid: own } });
    expect([same.status, same.body.objectId === target.body.objectId]).toEqual([201, false]);
  });

  test('adds the UnionID of the platform', async () => {
    const unionid = newUid();
    const weixinMembers = { platform: 'weixin', main_account: true };
    sessions(newUid(), { unionid });
    const first = await loginByPlatform({ [name]: { code: newUid(), ...weixinMembers } });
    expect(first.body._weixin_unionid).toEqual({ uid: unionid });
    sessions(newUid(), { unionid });
    const made = { [name]: { code: newUid(), ...weixinMembers, unionid: 'made-up' } };
    expect(refusalOf(await loginByPlatform(made))).toEqual(refused(251));
    answers = ({ query }) => ({ body: { openid: query.get('openid'), unionid } });
    const weixin = { openid: newUid(), access_token: 't', ...weixinMembers, unionid };
    expect((await loginByPlatform({ weixin })).body.objectId).toBe(first.body.objectId);
  });

  test('is refused without mini program credentials, naming the option', async () => {
    const open = await api.createApp();
    const reply = await api.request('POST', '/1.1/users', {
      app: open,
      body: { authData: code() },
    });
    expect(refusalOf(reply)).toEqual(refused(251));
    expect(reply.body.error).toMatch(/authPlatforms/);
    for (const settings of [
      {},
      { appId: 'a' },
      { appSecret: 'b' },
      { appId: '', appSecret: 'b' },
    ]) {
      const path = `/console/api/apps/${open.appId}`;
      const body = { options: { authPlatforms: { [name]: settings } } };
      expect((await api.request('PATCH', path, { admin: true, body })).status).toBe(400);
    }
  });

  test('a busy platform is called once more', async () => {
    const openid = newUid();
    platformRequests = [];
    answers = () => ({
      body: platformRequests.length === 1 ? { errcode: -1 } : { openid, session_key: 'k' },
    });
    expect((await loginByPlatform(code())).status).toBe(201);
    expect(platformRequests).toHaveLength(2);
  });
});

describe('MAC tokens of TapTap', () => {
  /** Starts a platform that knows one token and checks the signature of the request. */
  const denied = {
    status: 401,
    body: { success: false, data: { code: -1, error: 'access_denied' } },
  };
  const tokens = (
    owner: { openid: string; unionid?: string },
    scope = 'basic-info',
    otherwise: Answer = denied,
  ) => {
    platformRequests = [];
    answers = ({ path, query }) => {
      const header = platformRequests.at(-1)?.authorization ?? '';
      const parts = Object.fromEntries(
        [...header.matchAll(/(\w+)="([^"]*)"/g)].map(([, k, v]) => [k, v]),
      );
      const { hostname, port } = new URL(url);
      const text = `${parts.ts}\n${parts.nonce}\nGET\n${path}?${query}\n${hostname}\n${port}\n\n`;
      const mac = createHmac('sha1', 'a-key').update(text).digest('base64');
      const isRight = header.startsWith('MAC ') && parts.id === 'a-kid' && parts.mac === mac;
      const isAllowed = path === `/account/${scope}/v1` && query.get('client_id') === 'ours';
      return isRight && isAllowed ? { body: { success: true, data: owner } } : otherwise;
    };
  };

  test.each(['basic-info', 'profile'])(
    'log in their account with the scope of %s',
    async (scope) => {
      const openid = newUid();
      tokens({ openid }, scope);
      const first = await loginByPlatform({ taptap: tapTap(openid) });
      expect([first.status, first.body.authData]).toEqual([201, { taptap: tapTap(openid) }]);
      const again = await loginByPlatform({ taptap: { ...tapTap(openid), name: 'Ann' } });
      expect([again.status, again.body.objectId]).toEqual([200, first.body.objectId]);
      const noScope = {
        status: 403,
        body: { success: false, data: { code: -1, error: 'insufficient_scope' } },
      };
      for (const otherwise of [noScope, { status: 404, body: {} }, { status: 503, body: '' }]) {
        tokens({ openid }, scope, otherwise);
        expect((await loginByPlatform({ taptap: tapTap(openid) })).status).toBe(200);
      }
    },
  );

  test("give no session for forged entries or for another person's account", async () => {
    const [own, victim] = [newUid(), newUid()];
    tokens({ openid: victim });
    expect((await loginByPlatform({ taptap: tapTap(victim) })).status).toBe(201);
    tokens({ openid: own });
    const entry = tapTap(victim);
    const claims = [
      entry,
      { ...tapTap(own), uid: victim },
      { openid: victim, access_token: 'made up' },
      { ...tapTap(own), mac_key: 'another' },
      { ...tapTap(own), mac_key: '' },
      { ...tapTap(own), mac_algorithm: 'none' },
      { ...tapTap(own), kid: 'a", mac="' },
      { ...tapTap(own), kid: 'line\nbreak' },
      { ...tapTap(own), kid: 'Zeichen ü' },
      { ...tapTap(own), ...union },
    ];
    for (const claim of claims) {
      const { status, body } = await loginByPlatform({ taptap: claim });
      expect([claim, status]).toEqual([claim, 400]);
      expect([111, 250, 251]).toContain(body.code);
    }
  });

  test('confirm the UnionID', async () => {
    const openid = newUid();
    const taptap = {
      ...tapTap(openid),
      unionid: 'made-up',
      platform: 'taptap',
      main_account: true,
    };
    tokens({ openid, unionid: 'another' });
    expect(refusalOf(await loginByPlatform({ taptap }))).toEqual(refused(251));
    taptap.unionid = 'of-tap';
    tokens({ openid, unionid: 'of-tap' });
    expect((await loginByPlatform({ taptap })).body._taptap_unionid).toEqual({ uid: 'of-tap' });
  });
});
