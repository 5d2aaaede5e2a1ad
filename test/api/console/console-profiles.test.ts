import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import { Vault } from '../../../shared/crypto.ts';
import { openProfile } from '../../../shared/db/tables/profiles.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

let vault: Vault;

const api = useTestApi();
beforeAll(async () => {
  vault = new Vault(testConfig(api.databaseUrl).secrets);
});

const apps = '/console/api/apps';
const admin = (method: string, path: string, body?: unknown) =>
  api.request(method, path, { admin: true, ...(body === undefined ? {} : { body }) });

const { privateKey } = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const rsa = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const tokenProfile = {
  auth: 'token',
  teamId: 'TEAM123456',
  keyId: 'KEY1234567',
  privateKey,
  topics: ['com.example.app'],
};
const serviceAccount = {
  type: 'service_account',
  project_id: 'demo',
  client_email: 'push@demo.iam.gserviceaccount.com',
  private_key: rsa.privateKey,
  private_key_id: 'abc123',
  token_uri: 'https://oauth2.googleapis.com/token',
};

describe('PUT /console/api/apps/:appId/profiles/:connector/:name', () => {
  test.each(['channel', 'apple', 'APNS', '__proto__', 'constructor', 'hms'])(
    'connector %s is 404',
    async (connector) => {
      const app = await api.createApp();
      const { status } = await admin(
        'PUT',
        `${apps}/${app.appId}/profiles/${connector}/_default`,
        tokenProfile,
      );
      expect(status).toBe(404);
    },
  );

  test.each(['1a', '_x', 'a-b', 'a.b', '%20', 'a'.repeat(65), '%E4', 'x%00'])(
    'name %s is 400',
    async (name) => {
      const app = await api.createApp();
      const { status, body } = await admin(
        'PUT',
        `${apps}/${app.appId}/profiles/apns/${name}`,
        tokenProfile,
      );
      expect({ status, code: body.code }).toEqual({ status: 400, code: 1 });
    },
  );

  test('an unknown app is 404', async () => {
    expect(
      (await admin('PUT', `${apps}/nowhere/profiles/apns/_default`, tokenProfile)).status,
    ).toBe(404);
  });

  const ecKey = privateKey;
  const refusals: [string, string, unknown][] = [
    ['apns', 'nothing', {}],
    ['apns', 'no JSON', '{"auth":"token","privateKey":"SESAME'],
    ['apns', 'an unknown member', { ...tokenProfile, password: 'SESAME' }],
    ['apns', 'a key that is not a key', { ...tokenProfile, privateKey: 'SESAME' }],
    ['apns', 'an RSA key', { ...tokenProfile, privateKey: rsa.privateKey }],
    ['apns', 'no topics', { ...tokenProfile, topics: [] }],
    ['apns', 'an unknown environment', { ...tokenProfile, environment: 'SESAME' }],
    ['fcm', 'no service account', { serviceAccount: 'SESAME' }],
    ['fcm', 'an EC key', { serviceAccount: { ...serviceAccount, private_key: ecKey } }],
    [
      'vendor_g',
      'an invalid token_uri',
      { serviceAccount: { ...serviceAccount, token_uri: 'SESAME' } },
    ],
    ['vendor_a', 'no secret', { appId: 'SESAME' }],
    ['vendor_a', 'an invalid endpoint', { appId: '1', appSecret: 'SESAME', endpoint: 'SESAME' }],
    [
      'vendor_a',
      'an endpoint with a password',
      { appId: '1', appSecret: 's', endpoint: 'http://u:SESAME@h' },
    ],
    ['vendor_b', 'no package', { appId: '1', appSecret: 'SESAME' }],
    ['vendor_c', 'a number', { appId: 1, appSecret: 'SESAME' }],
    ['vendor_d', 'members of another vendor', { appId: '1', appSecret: 'SESAME' }],
    ['vendor_e', 'a blank in a secret', { appId: '1', appKey: 'k', appSecret: 'SESAME OPEN' }],
    [
      'vendor_f',
      'an invalid ca',
      { appId: '1', clientId: '2', clientSecret: 'SESAME', ca: 'SESAME' },
    ],
  ];
  test.each(refusals)(
    '%s: %s is 400, and the message quotes no value',
    async (connector, _case, sent) => {
      const app = await api.createApp();
      const { status, body } = await admin(
        'PUT',
        `${apps}/${app.appId}/profiles/${connector}/_default`,
        sent,
      );
      expect(status).toBe(400);
      expect([107, 111]).toContain(body.code);
      expect(body.error).not.toMatch(/SESAME|BEGIN/);
      expect((await admin('GET', `${apps}/${app.appId}/profiles`)).body).toEqual({ results: [] });
    },
  );

  const relay = { endpoint: 'https://relay.test/base', authEndpoint: 'http://127.0.0.1:9/token' };
  const accepted: [string, object][] = [
    ['apns', { ...tokenProfile, endpoint: 'https://127.0.0.1:8443' }],
    ['fcm', { serviceAccount, ...relay }],
    ['vendor_a', { appId: '100', appSecret: 'hush-a', intentHost: 'com.example', ...relay }],
    ['vendor_b', { appId: '100', appSecret: 'hush-b', packageName: 'com.example.app', ...relay }],
    ['vendor_c', { appId: '100', appSecret: 'hush-c', transport: 'standard' }],
    ['vendor_d', { appKey: '100', masterSecret: 'hush-d', ...relay }],
    ['vendor_e', { appId: '100', appKey: 'hush-k', appSecret: 'hush-e', ...relay }],
    ['vendor_f', { appId: '100', clientId: '200', clientSecret: 'hush-f', ...relay }],
    ['vendor_g', { serviceAccount }],
  ];
  test.each(accepted)(
    '%s is stored encrypted, and returned without its credentials',
    async (connector, sent) => {
      const app = await api.createApp();
      const path = `${apps}/${app.appId}/profiles/${connector}/Release_1`;
      const { status, body } = await admin('PUT', path, sent);
      expect(status).toBe(200);
      expect(body).toEqual({
        connector,
        name: 'Release_1',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/),
        updatedAt: body.createdAt,
      });
      expect((await admin('GET', `${apps}/${app.appId}/profiles`)).body).toEqual({
        results: [body],
      });
      const { rows } = await api.db.query<{ credentials: Buffer }>(
        'SELECT credentials FROM push_profile WHERE app_id = $1',
        [app.appId],
      );
      expect(rows[0]?.credentials.toString('latin1')).not.toMatch(/hush|BEGIN|100/);
      const stored = await openProfile(api.db, vault, {
        appId: app.appId,
        connector,
        name: 'Release_1',
      });
      const { type: _dropped, ...kept } = serviceAccount;
      expect(stored?.credentials).toEqual(
        'serviceAccount' in sent ? { ...sent, serviceAccount: kept } : sent,
      );
    },
  );

  const put = async (connector: string, sent: unknown) => {
    const app = await api.createApp();
    const path = `${apps}/${app.appId}/profiles/${connector}/_default`;
    const { body, status } = await admin('PUT', path, sent);
    const stored = await openProfile(api.db, vault, {
      appId: app.appId,
      connector,
      name: '_default',
    });
    return { body, status, path, stored: stored?.credentials };
  };
  const account = { ...serviceAccount };
  Reflect.deleteProperty(account, 'type');

  test('an expired certificate is 400 with its date, in a profile and in a rotation', async () => {
    const authority = await openCertificateAuthority();
    const issue = async (validForMs: number): Promise<JsonObject> => {
      const pair = await authority.issueClient({
        commonName: 'a',
        userId: 'com.example.app',
        validForMs,
      });
      return { auth: 'certificate', ...pair, topic: 'com.example.app' };
    };
    const [valid, expired] = [await issue(40 * 86_400_000), await issue(-3_600_000)];
    const text = /^The certificate expired on \d{4}-\d\d-\d\d: upload a new one\.$/;
    const refused = await put('apns', expired);
    expect(refused).toMatchObject({ status: 400, stored: undefined });
    expect(refused.body).toEqual({ code: 1, error: expect.stringMatching(text) });

    const { path, status } = await put('apns', valid);
    expect(status).toBe(200);
    for (const [method, target] of [
      ['PUT', path],
      ['PUT', `${path}/candidate`],
    ] as const) {
      const again = await admin(method, target, expired);
      expect({ status: again.status, error: again.body.error }).toEqual({
        status: 400,
        error: expect.stringMatching(text),
      });
    }
    const { certificate: ended } = await authority.issueClient({ commonName: 'a', validForMs: -1 });
    const untrusted = await put('vendor_d', { appKey: '1', masterSecret: 's', ca: ended });
    expect(untrusted.body.error).toMatch(/^A certificate in ca expired on /);
  });

  test("the vendor's file may replace the members, and its key may lack line breaks", async () => {
    expect(await put('fcm', serviceAccount)).toMatchObject({
      status: 200,
      stored: { serviceAccount: account },
    });
    const escaped = { ...serviceAccount, private_key: rsa.privateKey.replaceAll('\n', '\\n') };
    expect(await put('fcm', { serviceAccount: JSON.stringify(escaped) })).toMatchObject({
      status: 200,
      stored: { serviceAccount: account },
    });
    const p8 = { ...tokenProfile, privateKey: privateKey.trim().replaceAll('\n', '\\n') };
    expect(await put('apns', p8)).toMatchObject({ status: 200, stored: tokenProfile });
  });

  test.each<[connector: string, sent: object, error: string]>([
    [
      'fcm',
      { serviceAccount: { type: 'external_account', token_url: 'SESAME' } },
      'serviceAccount must be the content of another file: this is a file of Google of the type external_account (workload identity federation), which holds no key; the service account file is needed.',
    ],
    [
      'vendor_b',
      { ...serviceAccount, private_key: 'SESAME' },
      'this is a service account file of Google; this gateway takes no such file.',
    ],
    [
      'vendor_f',
      { appId: 'SESAME', clientId: '104000000', clientSecret: 'SESAME' },
      'appId must be digits only: it seems to be swapped with clientId.',
    ],
    ['apns', {}, 'auth must be "token" or "certificate".'],
    [
      'apns',
      { ...tokenProfile, privateKey: rsa.privateKey },
      'privateKey must be a PKCS#8 PEM with an EC P-256 key (the .p8 file); it is an RSA key, as of a certificate or of a service account.',
    ],
    [
      'fcm',
      { serviceAccount: { ...serviceAccount, token_uri: 5 } },
      'serviceAccount.token_uri must be',
    ],
  ])('%s: the refusal describes the problem (%#)', async (connector, sent, error) => {
    const { body, status, stored } = await put(connector, sent);
    expect({ status, code: body.code, stored }).toEqual({
      status: 400,
      code: 111,
      stored: undefined,
    });
    expect(body.error).toContain(error);
    expect(body.error).not.toContain('SESAME');
  });

  test('a profile may trust several certificates', async () => {
    const app = await api.createApp();
    const { createApnsCredentials, startApnsGateway } = await import(
      '../../../ops/sandbox/apns/server.ts'
    );
    const gateway = await startApnsGateway({ keys: [createApnsCredentials()] });
    await gateway.close();
    expect(new X509Certificate(gateway.ca).ca).toBe(true);
    const path = `${apps}/${app.appId}/profiles/vendor_d/_default`;
    const credentials = { appKey: '1', masterSecret: 's', ca: `${gateway.ca}\n${gateway.ca}` };
    expect((await admin('PUT', path, credentials)).status).toBe(200);
  });

  test('a second PUT replaces the credentials and keeps createdAt', async () => {
    const app = await api.createApp();
    const path = `${apps}/${app.appId}/profiles/vendor_d/_default`;
    const first = (await admin('PUT', path, { appKey: '1', masterSecret: 'one' })).body;
    const second = (await admin('PUT', path, { appKey: '1', masterSecret: 'two' })).body;
    expect(second.createdAt).toBe(first.createdAt);
    expect(Date.parse(second.updatedAt)).toBeGreaterThanOrEqual(Date.parse(first.updatedAt));
    const profile = { appId: app.appId, connector: 'vendor_d', name: '_default' };
    expect((await openProfile(api.db, vault, profile))?.credentials).toEqual({
      appKey: '1',
      masterSecret: 'two',
    });
  });

  test('credentials copied to another app cannot be decrypted', async () => {
    const [one, other] = [await api.createApp(), await api.createApp()];
    for (const { appId } of [one, other])
      await admin('PUT', `${apps}/${appId}/profiles/apns/_default`, tokenProfile);
    const { rows } = await api.db.query<{ credentials: Buffer }>(
      'SELECT credentials FROM push_profile WHERE app_id = $1',
      [one.appId],
    );
    await api.db.query('UPDATE push_profile SET credentials = $2 WHERE app_id = $1', [
      other.appId,
      rows[0]?.credentials,
    ]);
    await expect(
      openProfile(api.db, vault, { appId: other.appId, connector: 'apns', name: '_default' }),
    ).rejects.toThrow('damaged, or moved');
  });
});

describe('DELETE /console/api/apps/:appId/profiles/:connector/:name', () => {
  test('an unknown profile is 404', async () => {
    const app = await api.createApp();
    for (const rest of ['apns/_default', 'apns/other', 'nix/_default'])
      expect((await admin('DELETE', `${apps}/${app.appId}/profiles/${rest}`)).status).toBe(404);
    expect((await admin('DELETE', `${apps}/nowhere/profiles/apns/_default`)).status).toBe(404);
  });

  test('a deleted profile is not found', async () => {
    const app = await api.createApp();
    const path = `${apps}/${app.appId}/profiles/apns/_default`;
    await admin('PUT', path, tokenProfile);
    expect(await admin('DELETE', path)).toMatchObject({ status: 200, body: {} });
    expect((await admin('GET', `${apps}/${app.appId}/profiles`)).body).toEqual({ results: [] });
  });
});
