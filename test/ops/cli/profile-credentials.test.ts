import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import forge from 'node-forge';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commonMembers } from '../../../connectors/contract/guide.ts';
import { credentialsOf, guideOf } from '../../../connectors/registry.ts';
import { Vault } from '../../../shared/crypto.ts';
import { openProfiles } from '../../../shared/db/tables/apps/profiles.ts';
import { brandOf, findConnector, profileConnectorIds } from '../../../shared/domain/labels.ts';
import { testConfig } from '../../support/api.ts';
import { type CliResult, carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';

let folder: string;
let appId: string;

const service = useTestService();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-credentials-'));
  ({ appId } = await service.api.createApp());
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const run = (args: string[], stdin?: string): Promise<CliResult> =>
  carillon(args, {
    cwd: folder,
    env: { PUBLIC_URL: service.api.url, CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken },
    ...(stdin === undefined ? {} : { stdin }),
  });

async function file(name: string, content: string | Buffer): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

/** Returns the stored credentials, decrypted. */
async function storedCredentials(connector: string): Promise<unknown> {
  const { secrets } = testConfig(service.databaseUrl);
  const profiles = await openProfiles(service.db, new Vault(secrets), appId);
  return profiles.find((one) => one.connector === connector)?.credentials;
}

/** Creates a certificate in Apple's form: RSA, with the bundle id as UID of the subject. */
function appleCertificate(bundleId: string) {
  // The library takes seconds to create a key.
  const pair = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  const keys = {
    publicKey: forge.pki.publicKeyFromPem(pair.publicKey),
    privateKey: forge.pki.privateKeyFromPem(pair.privateKey),
  };
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = keys.publicKey;
  certificate.serialNumber = '01';
  certificate.validity.notAfter = new Date(certificate.validity.notBefore.getTime() + 86_400_000);
  const subject = [
    { type: '0.9.2342.19200300.100.1.1', value: bundleId },
    { name: 'commonName', value: `Apple Push Services: ${bundleId}` },
  ];
  certificate.setSubject(subject);
  certificate.setIssuer(subject);
  certificate.sign(keys.privateKey, forge.md.sha256.create());
  return { key: keys.privateKey, certificate };
}

const p8 = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey;

const rsaKey = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey;

describe('names of gateways', () => {
  test.each([
    ['mi', 'vendor_b'],
    ['Xiaomi', 'vendor_b'],
    ['HUAWEI', 'vendor_a'],
    ['hms', 'vendor_a'],
    ['oppo', 'vendor_d'],
    ['vendor_e', 'vendor_e'],
    ['meizu', 'vendor_c'],
    ['honor', 'vendor_f'],
    ['apple', 'apns'],
    ['firebase', 'fcm'],
    ['fcm', 'fcm'],
  ])('%s means %s', (name, connector) => {
    expect(findConnector(name)).toBe(connector);
  });

  test('every brand and id maps to its connector', () => {
    for (const id of profileConnectorIds)
      expect([findConnector(id), findConnector(brandOf(id))]).toEqual([id, id]);
  });

  test('an unknown name is wrong usage, and the error lists the gateways', async () => {
    const { code, stderr } = await run(['profile', 'put', appId, 'nokia', 'x.json']);
    expect(code).toBe(2);
    expect(stderr).toContain('vendor_b (Xiaomi)');
  });

  test('stores, lists and deletes a profile by the name of the vendor', async () => {
    const path = await file('mi.json', '{"appId":"1","appSecret":"s","packageName":"com.example.app"}');
    const put = await run(['profile', 'put', appId, 'xiaomi', path]);
    expect(put).toMatchObject({ code: 0, stderr: '' });
    expect(put.stdout).toContain('vendor_b/_default (Xiaomi)');
    expect((await run(['profile', 'list', appId])).stdout).toMatch(/vendor_b +Xiaomi +_default/);
    expect((await run(['profile', 'delete', appId, 'mi'])).code).toBe(0);
  });
});

describe('carillon profile help', () => {
  test('lists the gateways with both names', async () => {
    const { code, stdout } = await run(['profile', 'help']);
    expect(code).toBe(0);
    const rows = stdout.split('\n').map((line) => line.split(/ {2,}/));
    for (const id of profileConnectorIds) expect(rows).toContainEqual([id, brandOf(id)]);
  });

  test('describes one gateway with its members, an example and their source in its console', async () => {
    const { stdout } = await run(['profile', 'help', 'huawei']);
    for (const text of ['AppGallery Connect', 'appSecret', '"appId": "101234567"', 'agconnect-services.json'])
      expect(stdout).toContain(text);
  });

  test.each(profileConnectorIds)(
    'the guide of %s has a line for every member that its schema takes',
    (id) => {
      const guide = guideOf(id);
      const schema = credentialsOf(id)?.toJSONSchema({ io: 'input', unrepresentable: 'any' });
      const shapes = schema?.anyOf ?? schema?.oneOf ?? [schema];
      const members = new Set(shapes.flatMap((shape) => Object.keys(Object(shape).properties)));
      const described = { ...commonMembers, ...guide?.members };
      expect([...members].filter((name) => !(name in described))).toEqual([]);
      expect(Object.keys(guide?.members ?? {}).filter((name) => !members.has(name))).toEqual([]);
      expect(Object.keys(guide?.example ?? {}).filter((name) => !members.has(name))).toEqual([]);
    },
  );
});

describe('credentials in the files of the vendors', () => {
  test('a .p8 key: the Key ID is read from its name', async () => {
    const path = await file('AuthKey_ABCDE12345.p8', p8);
    const put = await run([
      'profile',
      'put',
      appId,
      'apns',
      path,
      '--team',
      'TEAM123456',
      '--topic',
      'com.a',
      'com.b',
    ]);
    expect(put).toMatchObject({ code: 0, stderr: '' });
    expect(await storedCredentials('apns')).toEqual({
      auth: 'token',
      teamId: 'TEAM123456',
      keyId: 'ABCDE12345',
      privateKey: p8,
      topics: ['com.a', 'com.b'],
    });
  });

  test('a .p8 key with missing options is wrong usage that names them', async () => {
    const path = await file('key.p8', p8);
    const { code, stderr } = await run(['profile', 'put', appId, 'apns', path]);
    expect(code).toBe(2);
    for (const option of ['--team', '--key', '--topic']) expect(stderr).toContain(option);
  });

  test.each(['3des', 'aes256'] as const)(
    'a .p12 file under %s: the topic is read from the certificate',
    async (algorithm) => {
      const { key, certificate } = appleCertificate('com.example.app');
      const pfx = forge.pkcs12.toPkcs12Asn1(key, [certificate], 'open sesame', { algorithm });
      const path = await file('push.p12', Buffer.from(forge.asn1.toDer(pfx).getBytes(), 'binary'));
      const password = await file('password.txt', 'open sesame\n');
      const put = await run(['profile', 'put', appId, 'apns', path, '--password-file', password]);
      expect(put).toMatchObject({ code: 0, stderr: '' });
      expect(await storedCredentials('apns')).toMatchObject({
        auth: 'certificate',
        topic: 'com.example.app',
        certificate: expect.stringContaining('BEGIN CERTIFICATE'),
        privateKey: expect.stringContaining('BEGIN PRIVATE KEY'),
      });

      const wrong = await file('wrong.txt', 'SESAME');
      const refused = await run(['profile', 'put', appId, 'apns', path, '--password-file', wrong]);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain('cannot be opened with this password');
      expect(refused.stderr).not.toContain('SESAME');

      const unasked = await run(['profile', 'put', appId, 'apns', path]);
      expect(unasked.code).toBe(2);
      expect(unasked.stderr).toContain('--password-file');
    },
  );

  test('a certificate and its key in PEM, in one file or two', async () => {
    const { key, certificate } = appleCertificate('com.example.pem');
    const parts = [forge.pki.certificateToPem(certificate), forge.pki.privateKeyToPem(key)];
    const whole = await file('both.pem', parts.join(''));
    expect((await run(['profile', 'put', appId, 'apns', whole])).code).toBe(0);
    const two = [await file('c.pem', parts[0] ?? ''), await file('k.pem', parts[1] ?? '')];
    expect((await run(['profile', 'put', appId, 'apns', ...two, '--environment', 'dev'])).code).toBe(0);
    expect(await storedCredentials('apns')).toMatchObject({ topic: 'com.example.pem', environment: 'dev' });
  });

  test("Firebase's service account file, and not the file that belongs into the app", async () => {
    const account = {
      type: 'service_account',
      project_id: 'example-app',
      private_key_id: 'abc',
      private_key: rsaKey,
      client_email: 'a@example-app.iam.gserviceaccount.com',
      client_id: '1',
      token_uri: 'https://oauth2.googleapis.com/token',
    };
    const path = await file('firebase.json', JSON.stringify(account));
    expect(await run(['profile', 'put', appId, 'firebase', path])).toMatchObject({ code: 0, stderr: '' });
    expect(await storedCredentials('fcm')).toMatchObject({ serviceAccount: { project_id: 'example-app' } });

    const wrong = await file('google-services.json', '{"project_info":{"project_id":"x"},"client":[]}');
    const refused = await run(['profile', 'put', appId, 'fcm', wrong]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('belongs into the app');
  });

  test("Huawei's agconnect-services.json with the app secret, and its service account file", async () => {
    const agconnect = {
      client: { app_id: '101234567', client_secret: 'ENCRYPTED' },
      configuration_version: '3.0',
    };
    const account = { project_id: '1', key_id: '2', sub_account: '3', private_key: rsaKey };
    const paths = [
      await file('agconnect-services.json', JSON.stringify(agconnect)),
      await file('huawei-account.json', JSON.stringify(account)),
    ];
    const secret = await file('secret.txt', 'open-sesame\n');
    const put = await run(['profile', 'put', appId, 'huawei', ...paths, '--secret-file', secret]);
    expect(put).toMatchObject({ code: 0, stderr: '' });
    expect(await storedCredentials('vendor_a')).toEqual({
      appId: '101234567',
      appSecret: 'open-sesame',
      serviceAccount: account,
    });
  });
});
