import { createHmac, generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSigner, createVerifier, type SignerOptions } from 'fast-jwt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ProviderTokens } from '../../../connectors/apns/provider-token.ts';
import { signJwt } from '../../../connectors/kit/access-token.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newUid } from '../../support/users.ts';

/**
 * Tests that another library can read our JWTs and that we can read the JWTs of another library.
 */
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = (key: { export(options: object): string | Buffer }, type: string) =>
  key.export({ type, format: 'pem' }).toString();

describe('one of our tokens', () => {
  test('for APNs is ES256, and names key, team and time', () => {
    const nowMs = Date.now();
    const privateKey = pem(ec.privateKey, 'pkcs8');
    const tokens = new ProviderTokens(
      { teamId: 'TEAM123456', keyId: 'KEY1234567', privateKey },
      movableClock(nowMs),
    );
    const [scheme, token = ''] = tokens.current().authorization.split(' ');
    const verify = createVerifier({
      key: pem(ec.publicKey, 'spki'),
      algorithms: ['ES256'],
      complete: true,
      // Apple refuses tokens that are older than an hour.
      maxAge: 3_600_000,
      allowedIss: 'TEAM123456',
    });
    const { header, payload } = verify(token);
    expect(scheme).toBe('bearer');
    expect(header).toMatchObject({ alg: 'ES256', kid: 'KEY1234567' });
    expect(payload).toEqual({ iss: 'TEAM123456', iat: expect.any(Number) });
    expect(payload.iat * 1000).toBeLessThan(nowMs);
  });

  test.each(['RS256', 'PS256'] as const)(
    'for a service account is %s, and is valid for an hour',
    async (algorithm) => {
      const nowS = Math.floor(Date.now() / 1000);
      const aud = 'https://oauth2.example.com/token';
      // Keys of accounts have the format PKCS#8 or PKCS#1.
      for (const type of ['pkcs8', 'pkcs1'] as const) {
        const key = { algorithm, keyId: 'key-1', privateKey: pem(rsa.privateKey, type) };
        const token = await signJwt(key, {
          nowS,
          lifetimeS: 3600,
          iss: 'me@example.com',
          aud,
          scope: 'push',
        });
        const allowed = { allowedAud: aud, allowedIss: 'me@example.com' };
        const verify = createVerifier({
          key: pem(rsa.publicKey, 'spki'),
          algorithms: [algorithm],
          complete: true,
          ...allowed,
        });
        const { header, payload } = verify(token);
        expect(header).toEqual({ alg: algorithm, typ: 'JWT', kid: 'key-1' });
        expect(payload.exp - payload.iat).toBe(3600);
        expect(payload).toMatchObject({ scope: 'push' });
      }
    },
  );
});

describe('an identity token of another library', () => {
  const api = useTestApi();
  const audience = 'com.example.app';
  const jwks = {
    keys: [
      { ...ec.publicKey.export({ format: 'jwk' }), kid: 'ec', alg: 'ES256', use: 'sig' },
      { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'rsa', alg: 'RS256', use: 'sig' },
    ],
  };
  const server = createServer((_, response) => response.end(JSON.stringify(jwks)));
  let app: App;

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
    app = await api.createApp({ authPlatforms: { lc_apple: { audience, jwksUrl } } });
  });
  afterAll(() => void server.close());

  const good: Partial<SignerOptions> = {
    algorithm: 'ES256',
    kid: 'ec',
    iss: 'https://appleid.apple.com',
    aud: audience,
    expiresIn: 600_000,
  };
  const statusOfLogin = async (identity_token: string, uid: string) =>
    (
      await api.request('POST', '/1.1/users', {
        app,
        body: { authData: { lc_apple: { uid, identity_token } } },
      })
    ).status;
  const key = { ES256: pem(ec.privateKey, 'pkcs8'), RS256: pem(rsa.privateKey, 'pkcs8') };
  const signed = (uid: string, options: Partial<SignerOptions>, secret: string) =>
    createSigner({ ...good, ...options, key: secret })({ sub: uid });

  test.each([
    ['signed with ES256', {}, 'ES256'],
    ['signed with RS256', { algorithm: 'RS256', kid: 'rsa' }, 'RS256'],
  ] as const)('logs in: %s', async (_, options, name) => {
    const uid = newUid();
    expect(await statusOfLogin(signed(uid, options, key[name]), uid)).toBe(201);
  });

  test.each([
    ['for another app', { aud: 'com.example.other' }, key.ES256],
    ['of another issuer', { iss: 'https://accounts.example.com' }, key.ES256],
    ['that has expired', { clockTimestamp: Date.now() - 3_600_000 }, key.ES256],
    ['that is not valid yet', { notBefore: 3_600_000 }, key.ES256],
    ['with the id of another key', { kid: 'rsa' }, key.ES256],
    [
      'of a key that nobody published',
      {},
      pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'pkcs8'),
    ],
  ] as const)('is refused: %s', async (_, options, secret) => {
    const uid = newUid();
    expect(await statusOfLogin(signed(uid, options, secret), uid)).toBe(400);
  });

  test('is refused unsigned, signed with the public key, or for another account', async () => {
    const uid = newUid();
    const [, claims] = signed(uid, {}, key.ES256).split('.');
    const unsigned = (alg: string) =>
      `${Buffer.from(JSON.stringify({ alg, typ: 'JWT', kid: 'ec' })).toString('base64url')}.${claims}`;
    expect(await statusOfLogin(`${unsigned('none')}.`, uid)).toBe(400);
    const publicKey = pem(ec.publicKey, 'spki');
    const mac = createHmac('sha256', publicKey).update(unsigned('HS256')).digest('base64url');
    expect(await statusOfLogin(`${unsigned('HS256')}.${mac}`, uid)).toBe(400);
    expect(await statusOfLogin(signed(newUid(), {}, key.ES256), uid)).toBe(400);
  });
});
