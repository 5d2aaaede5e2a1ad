import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestResponse } from '../../support/api.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { useTestApi } from '../../support/test-api.ts';
import {
  newName,
  newPhone,
  newUid,
  refusalOf,
  refused,
  signUp,
  type TestUser,
} from '../../support/users.ts';

let platform: Platform;
/** Offset of the service's clock in milliseconds. */
let aheadMs = 0;
const clock = { now: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs };

/** Simulated platforms with their tokens and published keys. */
interface Platform {
  url: string;
  server: Server;
  /** Owner and app of each token. */
  tokens: Map<string, { id: string; app: string; unionid?: string }>;
  keys: JWK[];
  requestedPaths: string[];
  isIll: boolean;
}

async function startPlatform(): Promise<Platform> {
  const state = { tokens: new Map(), keys: [], requestedPaths: [], isIll: false } as Omit<
    Platform,
    'url' | 'server'
  >;
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://platform');
    let body = '';
    for await (const chunk of request) body += chunk;
    platform.requestedPaths.push(url.pathname);
    if (platform.isIll) return response.writeHead(503).end('<html>');
    const token =
      url.searchParams.get('access_token') ?? new URLSearchParams(body).get('access_token') ?? '';
    const { status = 200, reply } = answer(url, platform.tokens.get(token));
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { ...state, server, url: `http://127.0.0.1:${port}` };
}

function answer(url: URL, owner: { id: string; app: string; unionid?: string } | undefined) {
  const openid = url.searchParams.get('openid');
  switch (url.pathname) {
    case '/sns/auth':
      return {
        reply:
          owner?.id === openid
            ? { errcode: 0, errmsg: 'ok' }
            : { errcode: 40003, errmsg: 'invalid openid' },
      };
    case '/sns/userinfo':
      return {
        reply: owner?.id === openid ? { openid, unionid: owner?.unionid } : { errcode: 40003 },
      };
    case '/oauth2.0/me':
      return owner
        ? { reply: { client_id: owner.app, openid: owner.id, unionid: owner.unionid } }
        : { reply: { error: 100016, error_description: 'access token check failed' } };
    case '/oauth2/get_token_info':
      return owner
        ? { reply: { uid: owner.id, appkey: owner.app, expire_in: 3600 } }
        : { status: 400, reply: { error: 'invalid_access_token', error_code: 21332 } };
    case '/keys':
      return { reply: { keys: platform.keys } };
    default:
      return { status: 404, reply: {} };
  }
}

const api = useTestApi({ clock });
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(async () => {
  platform.server.close();
});
beforeEach(() => {
  platform.isIll = false;
});

const loginByPlatform = (app: App, authData: object) =>
  api.request('POST', '/1.1/users', { app, body: { authData } });
/** Requests a code for a number and reads it from the outbox. */
async function codeFor(app: App, mobilePhoneNumber: string): Promise<string> {
  await api.request('POST', '/1.1/requestSmsCode', { app, body: { mobilePhoneNumber } });
  const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(mobilePhoneNumber)}`;
  return (await api.request('GET', path, { admin: true })).body.results[0].code;
}

const issueToken = (owner: { id: string; app: string; unionid?: string }) => {
  const token = newUid();
  platform.tokens.set(token, owner);
  return token;
};

test('the logins of one app do not wait for those of another app at its platform', async () => {
  const held: ServerResponse[] = [];
  const server = createServer((request, response) => {
    if (request.url?.includes('held')) held.push(response);
    else response.end(JSON.stringify({ errcode: 0, errmsg: 'ok' }));
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const weixin = { endpoint: `http://127.0.0.1:${port}`, appId: 'ours' };
  const [one, other] = [
    await api.createApp({ authPlatforms: { weixin } }),
    await api.createApp({ authPlatforms: { weixin } }),
  ];
  const logIn = (app: App, access_token: string) =>
    loginByPlatform(app, { weixin: { openid: newUid(), access_token } });
  const waiting = Array.from({ length: 32 }, () => logIn(one, 'held'));
  await expect.poll(() => held.length).toBe(16);
  expect((await logIn(other, 'fast')).status).toBe(201);
  expect(held.some(({ destroyed }) => destroyed)).toBe(false);
  server.closeAllConnections();
  await Promise.all(waiting);
});

describe('access tokens', () => {
  const names = ['weixin', 'qq', 'weibo'] as const;
  const idName = { weixin: 'openid', qq: 'openid', weibo: 'uid' } as const;
  const code = { weixin: 252, qq: 251, weibo: 251 } as const;
  const checking = () =>
    api.createApp({
      authPlatforms: Object.fromEntries(
        names.map((name) => [name, { endpoint: platform.url, appId: 'ours' }]),
      ),
    });

  test.each(names)(
    'of %s are refused if they are missing, invalid, or belong to another user',
    async (name) => {
      const app = await checking();
      const id = newUid();
      const theirs = issueToken({ id: newUid(), app: 'ours' });
      const entries = [
        { access_token: 'made up' },
        { access_token: theirs },
        { access_token: '' },
        {},
        // A token of another kind is invalid.
        { identity_token: 'x.y.z' },
      ];
      for (const more of entries)
        expect([
          more,
          refusalOf(await loginByPlatform(app, { [name]: { [idName[name]]: id, ...more } })),
        ]).toEqual([more, refused(code[name])]);
    },
  );

  test.each(names)('of %s log their user in', async (name) => {
    const app = await checking();
    const id = newUid();
    const entry = { [idName[name]]: id, access_token: issueToken({ id, app: 'ours' }) };
    const first = await loginByPlatform(app, { [name]: entry });
    expect(first.status).toBe(201);
    const again = { ...entry, access_token: issueToken({ id, app: 'ours' }) };
    expect((await loginByPlatform(app, { [name]: again })).body.objectId).toBe(first.body.objectId);
    expect(
      refusalOf(await loginByPlatform(app, { [name]: { ...entry, access_token: 'x' } })),
    ).toEqual(refused(code[name]));
  });

  test.each(['qq', 'weibo'] as const)('of %s must be issued for our app', async (name) => {
    const app = await checking();
    const id = newUid();
    const entry = { [idName[name]]: id, access_token: issueToken({ id, app: 'theirs' }) };
    expect(refusalOf(await loginByPlatform(app, { [name]: entry }))).toEqual(refused(251));
  });

  test('are checked for every platform of a request', async () => {
    const app = await checking();
    const [id, victim] = [newUid(), newUid()];
    await loginByPlatform(app, {
      weibo: { uid: victim, access_token: issueToken({ id: victim, app: 'ours' }) },
    });
    const good = { openid: id, access_token: issueToken({ id, app: 'ours' }) };
    const both = { weixin: good, weibo: { uid: victim, access_token: 'x' } };
    expect(refusalOf(await loginByPlatform(app, both))).toEqual(refused(251));
    const user = await signUp(api, app);
    expect(refusalOf(await user.put({ authData: both }))).toEqual(refused(251));
    expect(refusalOf(await user.put({ 'authData.weibo': both.weibo }))).toEqual(refused(251));
  });

  /**
   * Calls that write third-party accounts. Each gets the session of a user without third-party
   * accounts.
   */
  const writers: Record<
    string,
    (user: TestUser, app: App, authData: object) => Promise<TestResponse>
  > = {
    'a sign-up by the account': (_user, app, authData) => loginByPlatform(app, authData),
    'a sign-up with a password': (_user, app, authData) =>
      api.request('POST', '/1.1/users', {
        app,
        body: { username: newName(), password: 'secret', authData },
      }),
    'a sign-up by phone': async (_user, app, authData) => {
      const mobilePhoneNumber = newPhone();
      const smsCode = await codeFor(app, mobilePhoneNumber);
      const body = { mobilePhoneNumber, smsCode, authData };
      return api.request('POST', '/1.1/usersByMobilePhone', { app, body });
    },
    'a sign-up by phone, by a path': async (_user, app, authData) => {
      const mobilePhoneNumber = newPhone();
      const smsCode = await codeFor(app, mobilePhoneNumber);
      const [[name, entry] = []] = Object.entries(authData);
      const body = { mobilePhoneNumber, smsCode, [`authData.${name}`]: entry };
      return api.request('POST', '/1.1/usersByMobilePhone', { app, body });
    },
    'a change': (user, _app, authData) => user.put({ authData }),
    'a change by a path': (user, _app, authData) => {
      const [[name, entry] = []] = Object.entries(authData);
      return user.put({ [`authData.${name}`]: entry });
    },
    'a change with the master key': (user, app, authData) =>
      api.request('PUT', `/1.1/users/${user.id}`, { app, master: true, body: { authData } }),
    'a change by an operator': (user, app, authData) =>
      api.request('PUT', `/console/api/apps/${app.appId}/users/${user.id}`, {
        admin: true,
        body: { authData },
      }),
    'a batch': async (_user, app, authData) => {
      const requests = [{ method: 'POST', path: '/1.1/users', body: { authData } }];
      const { status, headers, body } = await api.request('POST', '/1.1/batch', {
        app,
        body: { requests },
      });
      const [first] = body as unknown as { error?: object; success?: object }[];
      return { status: first?.error ? 400 : status, headers, body: first?.error ?? first?.success };
    },
  };

  test.each(Object.keys(writers))(
    'are checked in %s: a forged token links nothing',
    async (writer) => {
      const app = await checking();
      const victim = newUid();
      const entry = { openid: victim, access_token: 'made up' };
      const user = await signUp(api, app);
      const reply = await writers[writer]?.(user, app, { weixin: entry });
      expect(reply && refusalOf(reply)).toEqual(refused(252));
      // The owner of the account gets a new account, not the account of the thief.
      const own = await loginByPlatform(app, {
        weixin: { openid: victim, access_token: issueToken({ id: victim, app: 'ours' }) },
      });
      expect([own.status, own.body.objectId === user.id]).toEqual([201, false]);
    },
  );

  test('link their account in a sign-up by phone, or return 208 if it has a user', async () => {
    const app = await checking();
    const id = newUid();
    const weixin = { openid: id, access_token: issueToken({ id, app: 'ours' }) };
    const byPhone = async () => {
      const mobilePhoneNumber = newPhone();
      const body = {
        mobilePhoneNumber,
        smsCode: await codeFor(app, mobilePhoneNumber),
        authData: { weixin },
      };
      return api.request('POST', '/1.1/usersByMobilePhone', { app, body });
    };
    const first = await byPhone();
    expect(first.status).toBe(201);
    expect((await loginByPlatform(app, { weixin })).body.objectId).toBe(first.body.objectId);
    expect((await byPhone()).body.code).toBe(208);
  });

  test('may be expired in a stored entry that is sent again', async () => {
    const app = await checking();
    const user = await signUp(api, app);
    const id = newUid();
    const weixin = { openid: id, access_token: issueToken({ id, app: 'ours' }) };
    expect((await user.put({ authData: { weixin } })).status).toBe(200);
    platform.tokens.delete(weixin.access_token);
    expect((await user.put({ authData: { weixin } })).status).toBe(200);
    const other = { ...weixin, openid: newUid() };
    expect(refusalOf(await user.put({ authData: { weixin: other } }))).toEqual(refused(252));
  });

  test('count their UnionID only if the platform confirms it', async () => {
    const app = await checking();
    const [id, unionid] = [newUid(), newUid()];
    const union = { unionid, platform: 'weixin', main_account: true };
    const token = issueToken({ id, app: 'ours', unionid });
    const owner = await loginByPlatform(app, {
      weixin: { openid: id, access_token: token, ...union },
    });
    expect(owner.status).toBe(201);
    const attackerId = newUid();
    const claims = [
      {
        weixin: {
          openid: attackerId,
          access_token: issueToken({ id: attackerId, app: 'ours' }),
          ...union,
        },
      },
      {
        weixin: {
          openid: attackerId,
          access_token: issueToken({ id: attackerId, app: 'ours', unionid: newUid() }),
          ...union,
        },
      },
      { weixin_2: { uid: attackerId, access_token: 'anything', ...union } },
      {
        weibo: {
          uid: attackerId,
          access_token: issueToken({ id: attackerId, app: 'ours' }),
          ...union,
        },
      },
    ];
    for (const claim of claims) expect((await loginByPlatform(app, claim)).body.code).toBe(251);
    const qq = { openid: newUid(), ...union };
    const same = {
      qq: { ...qq, access_token: issueToken({ id: qq.openid, app: 'ours', unionid }) },
    };
    expect((await loginByPlatform(app, same)).body.objectId).toBe(owner.body.objectId);
  });

  test('are not checked for other platforms; an option change applies at once', async () => {
    const app = await checking();
    const before = platform.requestedPaths.length;
    expect(
      (await loginByPlatform(app, { github: { uid: newUid(), access_token: 'anything' } })).status,
    ).toBe(201);
    expect(platform.requestedPaths.length).toBe(before);
    const entry = { weibo: { uid: newUid(), access_token: 'anything' } };
    expect((await loginByPlatform(app, entry)).status).toBe(400);
    await api.services.apps.change(app.appId, { options: { authPlatforms: {} } });
    expect((await loginByPlatform(app, entry)).status).toBe(201);
  });

  test('of other platforms are refused with checkedPlatformsOnly, naming options', async () => {
    const app = await checking();
    const github = { github: { uid: newUid(), access_token: 'anything' } };
    expect((await loginByPlatform(app, github)).status).toBe(201);
    await api.services.apps.change(app.appId, { options: { checkedPlatformsOnly: true } });
    const user = await signUp(api, app);
    for (const reply of [
      await loginByPlatform(app, github),
      await user.put({ authData: github }),
    ]) {
      expect(refusalOf(reply)).toEqual(refused(251));
      expect(reply.body.error).toMatch(/github.*checkedPlatformsOnly.*authPlatforms/);
    }
    const id = newUid();
    const weixin = { openid: id, access_token: issueToken({ id, app: 'ours' }) };
    expect((await loginByPlatform(app, { weixin })).status).toBe(201);
    expect((await loginByPlatform(app, { anonymous: { id: newUid() } })).status).toBe(201);
  });

  test('return 503 with Retry-After if the platform is unreachable', async () => {
    const app = await checking();
    const id = newUid();
    const entry = { weixin: { openid: id, access_token: issueToken({ id, app: 'ours' }) } };
    platform.isIll = true;
    const reply = await loginByPlatform(app, entry);
    expect([reply.status, reply.body.code, reply.headers.get('retry-after')]).toEqual([
      503,
      503,
      '5',
    ]);
    platform.isIll = false;
    expect((await loginByPlatform(app, entry)).status).toBe(201);
    const nowhere = await api.createApp({
      authPlatforms: { weixin: { endpoint: 'http://127.0.0.1:1' } },
    });
    expect((await loginByPlatform(nowhere, entry)).status).toBe(503);
  });
});

describe('identity tokens', () => {
  const issuer = 'https://appleid.apple.com';
  const audience = 'com.example.app';
  let app: App;
  let pair: Awaited<ReturnType<typeof generateKeyPair>>;
  const inSeconds = (seconds: number) => Math.floor(clock.now() / 1000) + seconds;

  beforeAll(async () => {
    pair = await generateKeyPair('RS256');
    platform.keys = [
      { ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' },
    ];
    app = await api.createApp({
      authPlatforms: { lc_apple: { audience, jwksUrl: `${platform.url}/keys` } },
    });
  });

  const claims = (sub: string): JWTPayload => ({
    sub,
    iss: issuer,
    aud: audience,
    exp: inSeconds(600),
  });
  const sign = (payload: JWTPayload, { kid = 'one', header = {} } = {}) =>
    new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid, ...header }).sign(pair.privateKey);
  const apple = (uid: string, identity_token: unknown) => ({
    lc_apple: { uid, identity_token, code: 'c' },
  });

  test('log in their subject', async () => {
    const uid = newUid();
    const first = await loginByPlatform(app, apple(uid, await sign(claims(uid))));
    expect(first.status).toBe(201);
    const second = await loginByPlatform(
      app,
      apple(uid, await sign({ ...claims(uid), aud: [audience, 'other'] })),
    );
    expect([second.status, second.body.objectId]).toEqual([200, first.body.objectId]);
  });

  test('are not verified by the keys that an app with other settings fetched', async () => {
    const { authority, server } = await loopbackIdentity();
    const identity = { cert: server.certificate, key: server.privateKey };
    const keyServer = createTlsServer(identity, (_, response) =>
      response.end(JSON.stringify({ keys: platform.keys })),
    );
    await new Promise<void>((resolve) => keyServer.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void keyServer.close());
    const jwksUrl = `https://127.0.0.1:${(keyServer.address() as AddressInfo).port}/keys`;
    const trusting = await api.createApp({
      authPlatforms: { lc_apple: { audience, jwksUrl, ca: authority.certificate } },
    });
    const distrusting = await api.createApp({ authPlatforms: { lc_apple: { audience, jwksUrl } } });
    const uid = newUid();
    const token = await sign(claims(uid));
    expect((await loginByPlatform(trusting, apple(uid, token))).status).toBe(201);
    expect((await loginByPlatform(distrusting, apple(uid, token))).status).toBe(503);
    expect((await loginByPlatform(trusting, apple(uid, token))).status).toBe(200);
  });

  test('are refused with a wrong algorithm, key, audience, issuer, time or subject', async () => {
    const uid = newUid();
    const good = claims(uid);
    const other = await generateKeyPair('RS256');
    const publicText = new TextEncoder().encode(JSON.stringify(platform.keys[0]));
    const { exp: _, ...endless } = good;
    const [head, body, signature] = (await sign(good)).split('.');
    const tokens: [string, unknown][] = [
      ['none', undefined],
      ['a dictionary instead of a text', { $ne: null }],
      ['a text that is not a token', 'x'],
      ['the algorithm none', new UnsecuredJWT(good).encode()],
      [
        'the public key as a secret',
        await new SignJWT(good).setProtectedHeader({ alg: 'HS256', kid: 'one' }).sign(publicText),
      ],
      [
        'another key',
        await new SignJWT(good)
          .setProtectedHeader({ alg: 'RS256', kid: 'one' })
          .sign(other.privateKey),
      ],
      [
        'a key of its own',
        await new SignJWT(good)
          .setProtectedHeader({ alg: 'RS256', jwk: await exportJWK(other.publicKey) })
          .sign(other.privateKey),
      ],
      [
        'a key at a URL of its own',
        await new SignJWT(good)
          .setProtectedHeader({
            alg: 'RS256',
            jku: `${platform.url}/evil`,
            x5u: `${platform.url}/evil`,
          })
          .sign(other.privateKey),
      ],
      ['a broken signature', `${head}.${body}.${signature?.slice(0, -2)}AA`],
      ['another audience', await sign({ ...good, aud: 'com.example.other' })],
      ['a missing audience', await sign({ sub: uid, iss: issuer, exp: good.exp ?? 0 })],
      ['another issuer', await sign({ ...good, iss: 'https://evil.example' })],
      ['a missing expiry', await sign(endless)],
      ['an expiry in the past', await sign({ ...good, exp: inSeconds(-60) })],
      ['a start in the future', await sign({ ...good, nbf: inSeconds(600) })],
      ['another person', await sign(claims(newUid()))],
      ['a missing subject', await sign({ iss: issuer, aud: audience, exp: inSeconds(600) })],
    ];
    for (const [name, token] of tokens) {
      const reply = await loginByPlatform(app, apple(uid, token));
      expect([name, reply.status]).toEqual([name, 400]);
      expect([105, 111, 121, 250, 251]).toContain(reply.body.code);
    }
    expect(platform.requestedPaths).not.toContain('/evil');
  });

  test('are refused in sign-up, link and batch until an option configures them', async () => {
    const open = await api.createApp();
    const user = await signUp(api, open);
    const uid = newUid();
    const token = await sign(claims(uid));
    const entries = [
      { lc_apple: { uid, identity_token: token, code: 'c' } },
      { lc_apple: { uid, identity_token: 'made up' } },
      { lc_apple: { uid, access_token: 'a token' } },
      { lc_apple: { uid } },
      { lc_google: { uid, identity_token: token } },
      { google: { uid, identity_token: token } },
    ];
    for (const authData of entries) {
      const [platform = ''] = Object.keys(authData);
      const batch = {
        requests: [{ method: 'POST', path: '/1.1/users', body: { authData } }],
      };
      const [inner] = (await api.request('POST', '/1.1/batch', { app: open, body: batch })).body;
      const replies = [
        await loginByPlatform(open, authData),
        await user.put({ authData }),
        await user.put({ [`authData.${platform}`]: Object.values(authData)[0] }),
        await api.request('POST', '/1.1/users', { app: open, master: true, body: { authData } }),
        { status: 400, body: inner.error },
      ];
      for (const { status, body } of replies) {
        expect([authData, status, body.code]).toEqual([authData, 400, 251]);
        expect(body.error).toMatch(new RegExp(`${platform}.*authPlatforms`));
      }
    }
    await api.services.apps.change(open.appId, {
      options: { authPlatforms: { lc_apple: { audience, jwks: { keys: platform.keys } } } },
    });
    expect((await loginByPlatform(open, { lc_apple: { uid, identity_token: token } })).status).toBe(
      201,
    );
  });

  test('cannot be replaced by an access token', async () => {
    const authData = { lc_apple: { uid: newUid(), access_token: 'a token' } };
    expect(refusalOf(await loginByPlatform(app, authData))).toEqual(refused(251));
  });

  test('of a new key are valid after the platform publishes it; keys are cached', async () => {
    const next = await generateKeyPair('ES256');
    const uid = newUid();
    const token = () =>
      new SignJWT(claims(uid))
        .setProtectedHeader({ alg: 'ES256', kid: 'two' })
        .sign(next.privateKey);
    expect((await loginByPlatform(app, apple(uid, await token()))).body.code).toBe(251);
    platform.keys.push({
      ...(await exportJWK(next.publicKey)),
      kid: 'two',
      alg: 'ES256',
      use: 'sig',
    });
    const count = () => platform.requestedPaths.filter((path) => path === '/keys').length;
    const before = count();
    for (let i = 0; i < 5; i += 1)
      expect((await loginByPlatform(app, apple(uid, await token()))).body.code).toBe(251);
    expect(count()).toBe(before);
    aheadMs += 31_000;
    expect((await loginByPlatform(app, apple(uid, await token()))).status).toBe(201);
    expect(count()).toBe(before + 1);
  });

  test('may be verified by keys in the option, for any platform', async () => {
    const local = await api.createApp({
      authPlatforms: {
        lc_google: {
          audience,
          issuer: 'https://accounts.google.com',
          algorithms: ['RS256'],
          jwks: { keys: platform.keys },
        },
      },
    });
    const uid = newUid();
    const token = await sign({ ...claims(uid), iss: 'https://accounts.google.com' });
    expect(
      (await loginByPlatform(local, { lc_google: { uid, identity_token: token } })).status,
    ).toBe(201);
    const wrong = await sign(claims(uid));
    expect(
      (await loginByPlatform(local, { lc_google: { uid, identity_token: wrong } })).body.code,
    ).toBe(251);
  });

  test('return 503 after a failed fetch of keys, which is not cached', async () => {
    const fresh = await api.createApp({
      authPlatforms: { lc_apple: { audience, jwksUrl: `${platform.url}/keys?fresh` } },
    });
    const uid = newUid();
    const token = await sign(claims(uid));
    platform.isIll = true;
    expect((await loginByPlatform(fresh, apple(uid, token))).status).toBe(503);
    platform.isIll = false;
    expect((await loginByPlatform(fresh, apple(uid, token))).status).toBe(201);
  });
});

describe('the option authPlatforms', () => {
  const patch = async (authPlatforms: unknown) => {
    const app = await api.createApp();
    const path = `/console/api/apps/${app.appId}`;
    return api.request('PATCH', path, { admin: true, body: { options: { authPlatforms } } });
  };

  test('is refused if its settings are unusable, with a text without their values', async () => {
    const settings = [
      { lc_apple: {} },
      { lc_apple: { audience: '' } },
      { lc_apple: { audience: 'a', algorithms: ['none'] } },
      { lc_apple: { audience: 'a', algorithms: ['HS256'] } },
      { lc_apple: { audience: 'a', jwksUrl: 'file:///etc/passwd' } },
      { lc_apple: { audience: 'a', jwks: { keys: [] } } },
      { weibo: { endpoint: 'https://api.weibo.com' } },
      { weixin: { endpoint: 'SESAME' } },
      { github: { appId: 'x' } },
      { 'a.b': { audience: 'a' } },
      { weixin: 'x' },
      [],
    ];
    for (const one of settings) {
      const { status, body } = await patch(one);
      expect([one, status]).toEqual([one, 400]);
      expect(body.error).not.toMatch(/SESAME|passwd/);
    }
  });

  test('is accepted with the settings that a platform needs', async () => {
    for (const one of [
      { weixin: {} },
      { qq: { appId: 'x', appKey: 'y' } },
      { weibo: { appId: 'x' } },
      { lc_apple: { audience: ['a', 'b'] } },
    ])
      expect((await patch(one)).status).toBe(200);
  });
});
