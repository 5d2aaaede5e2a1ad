import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newUid } from '../../support/users.ts';

/** Offset of the service's clock in milliseconds. */
let aheadMs = 0;
const clock = { now: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs };
const issuer = 'https://appleid.apple.com';
const audience = 'com.example.app';

/** Signs tokens. `jwk` is the public key in the form that a platform publishes. */
interface Signer {
  jwk: JWK;
  sign(sub: string, header?: { kid?: string }): Promise<string>;
}

async function newSigner(kid: string): Promise<Signer> {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  return {
    jwk: { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' },
    sign: (sub, header = { kid }) =>
      new SignJWT({ sub, iss: issuer, aud: audience, exp: Math.floor(clock.now() / 1000) + 600 })
        .setProtectedHeader({ alg: 'ES256', ...header })
        .sign(privateKey),
  };
}

let url = '';
let fetches = 0;
let answer: (response: ServerResponse) => void;
const server = createServer((_, response) => {
  fetches += 1;
  answer(response);
});
const publish = (...signers: Signer[]) => {
  answer = (response) => response.end(JSON.stringify({ keys: signers.map(({ jwk }) => jwk) }));
};
/** Replies of a platform without a usable set of keys. */
const badAnswers: [string, (response: ServerResponse) => void][] = [
  ['an empty set', (response) => response.end('{"keys":[]}')],
  ['a set of secrets', (response) => response.end('{"keys":[{"kty":"oct","k":"AAAA"}]}')],
  ['a document without a set', (response) => response.end('{}')],
  ['a page', (response) => response.end('<html>')],
  ['a temporary status', (response) => response.writeHead(503).end('{"keys":[]}')],
  ['a refusal', (response) => response.writeHead(403).end('{"error":403}')],
  ['a redirect', (response) => response.writeHead(302, { location: '/' }).end()],
  ['a cut connection', (response) => void response.destroy()],
];

const api = useTestApi({ clock });
let app: App;
let serial = 0;
let one: Signer;
let two: Signer;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  [one, two] = [await newSigner('one'), await newSigner('two')];
});
afterAll(() => void server.close());
// Each test has its own address, so that no keys are cached.
beforeEach(async () => {
  const jwksUrl = `${url}/keys?${++serial}`;
  app = await api.createApp({ authPlatforms: { lc_apple: { audience, jwksUrl } } });
  fetches = 0;
});

async function signUp(signer: Signer, header?: { kid?: string }): Promise<number> {
  const uid = newUid();
  const authData = { lc_apple: { uid, identity_token: await signer.sign(uid, header) } };
  return (await api.request('POST', '/1.1/users', { app, body: { authData } })).status;
}
const signUpMany = (signer: Signer, count: number) =>
  Promise.all(Array.from({ length: count }, () => signUp(signer)));

describe('a rotation of keys', () => {
  test('refuses no concurrent login, and fetches the keys once', async () => {
    publish(one);
    expect(new Set(await signUpMany(one, 20))).toEqual(new Set([201]));
    expect(fetches).toBe(1);
    publish(two);
    aheadMs += 31_000;
    expect(new Set(await signUpMany(two, 40))).toEqual(new Set([201]));
    expect(fetches).toBe(2);
  });

  test('is detected even if the new key has the old name, or tokens name no key', async () => {
    publish(one);
    expect(await signUp(one)).toBe(201);
    const renamed = await newSigner('one');
    publish(renamed);
    aheadMs += 31_000;
    expect(await signUp(renamed)).toBe(201);
    const nameless = await newSigner('one');
    publish(nameless);
    aheadMs += 31_000;
    expect(await signUp(nameless, {})).toBe(201);
    // Several keys may match a token that names no key.
    publish(one, two, nameless);
    aheadMs += 11 * 60_000;
    for (const signer of [one, two, nameless]) expect(await signUp(signer, {})).toBe(201);
    expect(await signUp(renamed, {})).toBe(400);
  });
});

describe.each(badAnswers)('a platform that answers with %s', (_name, bad) => {
  test('prevents no login with a cached key, even after ten minutes', async () => {
    publish(one);
    expect(await signUp(one)).toBe(201);
    answer = bad;
    aheadMs += 31_000;
    // A token with an unknown key proves nothing, neither valid nor invalid.
    expect(await signUp(two)).toBe(503);
    expect(await signUp(one)).toBe(201);
    aheadMs += 11 * 60_000;
    expect(await signUp(one)).toBe(201);
    publish(two);
    aheadMs += 1_100;
    expect(await signUp(two)).toBe(201);
    expect(await signUp(one)).toBe(400);
  });

  test('causes 503 if no keys are cached, and the next login fetches them again', async () => {
    answer = bad;
    expect(await signUp(one)).toBe(503);
    publish(one);
    expect(await signUp(one)).toBe(201);
  });
});

test('ignores a malformed key in the set', async () => {
  answer = (response) =>
    response.end('{"keys":[{"kty":"EC","kid":"one","crv":"P-256","x":"AA","y":"AA"}]}');
  expect(await signUp(one)).toBe(503);
});
