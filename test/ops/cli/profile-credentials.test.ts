import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import forge from 'node-forge';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commonMembers } from '../../../connectors/contract/guide.ts';
import { guideOf } from '../../../connectors/guides.ts';
import { credentialsOf } from '../../../connectors/registry.ts';
import { Vault } from '../../../shared/crypto.ts';
import { openProfiles } from '../../../shared/db/tables/profiles.ts';
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
    env: {
      PUBLIC_URL: service.api.url,
      CARILLON_ADMIN_TOKEN: testConfig(service.databaseUrl).adminToken,
    },
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

const dayMs = 86_400_000;

/**
 * Creates a certificate in Apple's form: RSA, with the bundle id as UID of the subject, valid for
 * `days` from yesterday.
 */
function appleCertificate(bundleId: string | null, days = 2) {
  // Uses Node, because the library takes seconds to create a key.
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
  const fromMs = certificate.validity.notBefore.getTime() - dayMs;
  certificate.validity.notBefore = new Date(fromMs);
  certificate.validity.notAfter = new Date(fromMs + days * dayMs);
  const subject = [
    ...(bundleId === null ? [] : [{ type: '0.9.2342.19200300.100.1.1', value: bundleId }]),
    { name: 'commonName', value: `Apple Push Services: ${bundleId}` },
  ];
  certificate.setSubject(subject);
  certificate.setIssuer(subject);
  certificate.sign(keys.privateKey, forge.md.sha256.create());
  return { key: keys.privateKey, certificate };
}
type ApplePair = ReturnType<typeof appleCertificate>;

const { certificateToPem, privateKeyToPem } = forge.pki;
const keyPem = ({ key }: ApplePair): string =>
  String(createPrivateKey(privateKeyToPem(key)).export({ type: 'pkcs8', format: 'pem' }));
const derOf = (element: forge.asn1.Asn1): Buffer =>
  Buffer.from(forge.asn1.toDer(element).getBytes(), 'binary');

/** Creates a .p12 file with all pairs, like an export of several items from Keychain Access. */
function pkcs12Of(pairs: ApplePair[], password: string): Buffer {
  const { asn1, pkcs12 } = forge;
  const safeOf = (file: forge.asn1.Asn1) => Object(file).value[1].value[1].value[0];
  const files = pairs.map(({ certificate, key }) =>
    pkcs12.toPkcs12Asn1(key, [certificate], password, { algorithm: '3des', useMac: false }),
  );
  const bags = files.flatMap((one) => Object(asn1.fromDer(safeOf(one).value)).value);
  const [whole] = files;
  if (!whole) throw new Error('no pair');
  const { SEQUENCE } = asn1.Type;
  safeOf(whole).value = asn1
    .toDer(asn1.create(asn1.Class.UNIVERSAL, SEQUENCE, true, bags))
    .getBytes();
  return derOf(whole);
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

const requestPem = '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n';

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
    const path = await file(
      'mi.json',
      '{"appId":"1","appSecret":"s","packageName":"com.example.app"}',
    );
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

  test('describes a gateway: members, an example, and where to find them', async () => {
    const { stdout } = await run(['profile', 'help', 'huawei']);
    for (const text of [
      'AppGallery Connect',
      'appSecret',
      '"appId": "101234567"',
      'agconnect-services.json',
    ])
      expect(stdout).toContain(text);
  });

  test.each(profileConnectorIds)(
    'the guide of %s has a line for every member of its schema',
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

describe("credentials in the vendors' files", () => {
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
    expect(
      (await run(['profile', 'put', appId, 'apns', ...two, '--environment', 'dev'])).code,
    ).toBe(0);
    expect(await storedCredentials('apns')).toMatchObject({
      topic: 'com.example.pem',
      environment: 'dev',
    });
  });

  test("Firebase's service account file, but not the file for the app", async () => {
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
    expect(await run(['profile', 'put', appId, 'firebase', path])).toMatchObject({
      code: 0,
      stderr: '',
    });
    expect(await storedCredentials('fcm')).toMatchObject({
      serviceAccount: { project_id: 'example-app' },
    });

    const wrong = await file(
      'google-services.json',
      '{"project_info":{"project_id":"x"},"client":[]}',
    );
    const refused = await run(['profile', 'put', appId, 'fcm', wrong]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('belongs into the app');
  });

  test("Huawei's agconnect-services.json with the app secret", async () => {
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

describe('Apple’s certificates with their keys', () => {
  const bundle = 'com.example.bundle';
  const put = (...args: string[]) => run(['profile', 'put', appId, 'apns', ...args]);
  let short: ApplePair;
  let long: ApplePair;
  let expired: ApplePair;
  let password: string;

  beforeAll(async () => {
    short = appleCertificate(bundle, 30);
    long = appleCertificate(bundle, 300);
    expired = appleCertificate(bundle, 0.5);
    password = await file('bundle-password.txt', 'open sesame\n');
  });

  test('in a .p12 file with several, the pair valid longest is used', async () => {
    for (const pairs of [
      [short, expired, long],
      [long, short, expired],
      [expired, long, short],
    ]) {
      const path = await file('several.p12', pkcs12Of(pairs, 'open sesame'));
      expect(await put(path, '--password-file', password)).toMatchObject({ code: 0, stderr: '' });
      expect(await storedCredentials('apns')).toMatchObject({
        topic: bundle,
        privateKey: keyPem(long),
      });
    }
  });

  test('in a PEM bundle or several files, too', async () => {
    const pems = [short, long, expired].flatMap((pair) => [
      keyPem(pair),
      certificateToPem(pair.certificate),
    ]);
    const whole = await file(
      'bundle.pem',
      `\ufeff${pems.toReversed().join('').replaceAll('\n', '\r\n')}`,
    );
    const parts = await Promise.all(pems.map((pem, index) => file(`part-${index}.pem`, pem)));
    for (const paths of [[whole], parts]) {
      expect(await put(...paths)).toMatchObject({ code: 0, stderr: '' });
      expect(await storedCredentials('apns')).toMatchObject({
        topic: bundle,
        privateKey: keyPem(long),
      });
    }
  });

  test('--topic chooses the pair of another bundle id', async () => {
    const other = appleCertificate('com.example.other', 3);
    const path = await file('apps.p12', pkcs12Of([long, other], 'open sesame'));
    const args = [path, '--password-file', password, '--topic', 'com.example.other'];
    expect(await put(...args)).toMatchObject({ code: 0, stderr: '' });
    expect(await storedCredentials('apns')).toMatchObject({ privateKey: keyPem(other) });
  });

  test("as a DER certificate, in Apple's form, with its key", async () => {
    const cer = await file('aps.cer', derOf(forge.pki.certificateToAsn1(long.certificate)));
    const key = await file('aps.key', keyPem(long));
    expect(await put(cer, key)).toMatchObject({ code: 0, stderr: '' });
    expect(await storedCredentials('apns')).toMatchObject({
      topic: bundle,
      privateKey: keyPem(long),
    });
    const alone = await put(cer);
    expect(alone.code).toBe(2);
    expect(alone.stderr).toContain('the key of the certificate is missing');
  });

  test('are refused with the date if expired, and nothing is stored', async () => {
    const before = await storedCredentials('apns');
    const date = expired.certificate.validity.notAfter.toISOString().slice(0, 10);
    const p12 = await file('old.p12', pkcs12Of([expired], 'open sesame'));
    const pem = await file('old.pem', keyPem(expired) + certificateToPem(expired.certificate));
    for (const args of [[p12, '--password-file', password], [pem]]) {
      const refused = await put(...args);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain(`expired on ${date}`);
    }
    expect(await storedCredentials('apns')).toEqual(before);
  });

  test('are accepted with a warning if they name no bundle id', async () => {
    const plain = appleCertificate(null);
    const path = await file('plain.pem', keyPem(plain) + certificateToPem(plain.certificate));
    const untitled = await put(path);
    expect(untitled.code).toBe(2);
    expect(untitled.stderr).toContain('--topic');
    const stored = await put(path, '--topic', bundle);
    expect(stored.code).toBe(0);
    expect(stored.stdout).toContain('Warning: The certificate names no bundle id');
  });

  test('without a pair or with an encrypted key are refused with the cause', async () => {
    const pair = await file('mixed.pem', keyPem(short) + certificateToPem(long.certificate));
    expect((await put(pair)).stderr).toContain('None of the keys belongs to a certificate');
    const sealed = forge.pki.encryptRsaPrivateKey(long.key, 'open sesame');
    const locked = await file('locked.pem', sealed + certificateToPem(long.certificate));
    expect((await put(locked)).stderr).toContain('locked.pem is encrypted');
    const plist = await file(
      'GoogleService-Info.plist',
      '<?xml version="1.0"?>\n<plist></plist>\n',
    );
    expect((await put(plist)).stderr).toContain('belongs into the app');
    const request = await file('push.certSigningRequest', requestPem);
    expect((await put(request)).stderr).toContain('it holds a certificate request');
  });
});

describe('files of the right kind with wrong content', () => {
  test('the Key ID instead of the Team ID, or a Key ID that differs from the file', async () => {
    const path = await file('AuthKey_ABCDE12345.p8', p8);
    const put = ['profile', 'put', appId, 'apns', path, '--topic', 'com.a'];
    const swapped = await run([...put, '--team', 'ABCDE12345', '--key', 'TEAM123456']);
    expect(swapped.code).toBe(2);
    expect(swapped.stderr).toContain('--team is the Key ID');
    const other = await run([...put, '--team', 'TEAM123456', '--key', 'FGHIJ67890']);
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('--key is not the Key ID');
  });

  test('a .p8 key in the form that an editor or an environment variable produces', async () => {
    for (const text of [p8.replaceAll('\n', '\\n'), `\ufeff${p8.replaceAll('\n', '\r\n')}`]) {
      const path = await file('AuthKey_ABCDE12345.p8', text);
      const args = [
        'profile',
        'put',
        appId,
        'apns',
        path,
        '--team',
        'TEAM123456',
        '--topic',
        'com.a',
      ];
      expect(await run(args)).toMatchObject({ code: 0, stderr: '' });
      expect(await storedCredentials('apns')).toMatchObject({ privateKey: p8 });
    }
  });

  test.each<[gateway: string, document: object, cause: string]>([
    ['fcm', { type: 'external_account', audience: 'x' }, 'workload identity federation'],
    ['fcm', { type: 'authorized_user', refresh_token: 'r' }, 'the login of a person'],
    ['huawei', { type: 'service_account', private_key: 'p' }, 'a service account file of Google'],
    ['xiaomi', { type: 'service_account', private_key: 'p' }, 'a service account file of Google'],
    ['honor', { appId: 'abc', clientId: '104000000', clientSecret: 's' }, 'swapped with clientId'],
    [
      'fcm',
      { serviceAccount: { type: 'service_account' } },
      'serviceAccount.project_id is missing',
    ],
    ['fcm', {}, 'serviceAccount must be the content of a service account file'],
  ])('%s: %j', async (gateway, document, cause) => {
    const path = await file('wrong.json', JSON.stringify(document));
    const refused = await run(['profile', 'put', appId, gateway, path]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(cause);
  });
});
