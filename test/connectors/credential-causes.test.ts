/**
 * Tests credentials in the forms that people provide: which forms are accepted, and the cause that
 * a refusal names.
 */
import { generateKeyPairSync } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkCredentials, inspectCredentials } from '../../connectors/registry.ts';
import { createApnsCredentials } from '../../ops/sandbox/apns/server.ts';
import {
  type CertificateAuthority,
  type KeyPairPem,
  openCertificateAuthority,
} from '../../ops/sandbox/kit/certificates.ts';
import { systemClock } from '../../shared/clock.ts';
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import { reason, reasonText } from '../../shared/domain/reasons.ts';
import { topic } from '../support/gateways/apns.ts';

const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const spki = { type: 'spki', format: 'pem' } as const;
const rsa = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: pkcs8,
  publicKeyEncoding: spki,
});
const p384 = generateKeyPairSync('ec', {
  namedCurve: 'P-384',
  privateKeyEncoding: pkcs8,
  publicKeyEncoding: spki,
});
const ed25519 = generateKeyPairSync('ed25519', {
  privateKeyEncoding: pkcs8,
  publicKeyEncoding: spki,
});
const { publicKey: _, ...token } = createApnsCredentials();
const p8 = token.privateKey;
const sealed = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { ...pkcs8, cipher: 'aes-256-cbc', passphrase: 'x' },
  publicKeyEncoding: spki,
}).privateKey;
const certificateRequest =
  '-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n';

const account = {
  type: 'service_account',
  project_id: 'example-app',
  private_key_id: 'abc',
  private_key: rsa.privateKey,
  client_email: 'a@example-app.iam.gserviceaccount.com',
  token_uri: 'https://oauth2.googleapis.com/token',
};
const huaweiAccount = {
  project_id: '1',
  key_id: '2',
  sub_account: '3',
  private_key: rsa.privateKey,
};
const agconnect = {
  client: { app_id: '101234567', client_secret: 'sealed' },
  configuration_version: '3.0',
};
const googleServices = { project_info: { project_id: 'x' }, client: [] };

const apns = (privateKey: Json): JsonObject => ({ auth: 'token', ...token, privateKey });
const fcm = (privateKey: Json): JsonObject => ({
  serviceAccount: { ...account, private_key: privateKey },
});
const huawei = (privateKey: Json): JsonObject => ({
  appId: '1',
  appSecret: 's',
  serviceAccount: { ...huaweiAccount, private_key: privateKey },
});

const errorOf = (connector: ConnectorId, sent: unknown): string => {
  const checked = checkCredentials(connector, sent);
  return checked.ok ? 'none' : checked.error;
};
const storedOf = (connector: ConnectorId, sent: unknown): JsonObject => {
  const checked = checkCredentials(connector, sent);
  if (!checked.ok) throw new Error(checked.error);
  return Object(checked.credentials);
};

/** A key in the forms that editors, environment variables and secret stores produce. */
const changedForms: [name: string, change: (pem: string) => string][] = [
  ['literal \\n', (pem) => pem.trim().replaceAll('\n', '\\n')],
  ['literal \\r\\n', (pem) => pem.replaceAll('\n', '\\r\\n')],
  ['CRLF', (pem) => pem.replaceAll('\n', '\r\n')],
  ['a byte order mark', (pem) => `\ufeff${pem}`],
  ['both', (pem) => `\ufeff${pem.replaceAll('\n', '\r\n')}`],
  ['blanks in place of line breaks', (pem) => pem.replaceAll('\n', ' ')],
  ['no line breaks', (pem) => pem.replaceAll('\n', '')],
  ['indented lines', (pem) => pem.replaceAll('\n', '\n    ')],
  ['text around it', (pem) => `Bag Attributes\n    friendlyName: key\n${pem}\n(end)`],
  ['the whole in base64', (pem) => Buffer.from(pem).toString('base64')],
];

describe.each<[ConnectorId, (key: Json) => JsonObject, string, (stored: JsonObject) => unknown]>([
  ['apns', apns, p8, ({ privateKey }) => privateKey],
  ['fcm', fcm, rsa.privateKey, ({ serviceAccount }) => Object(serviceAccount).private_key],
  ['vendor_a', huawei, rsa.privateKey, ({ serviceAccount }) => Object(serviceAccount).private_key],
])('a private key of %s', (connector, withKey, pem, keyIn) => {
  test('stays unchanged in its usual form', () => {
    expect(keyIn(storedOf(connector, withKey(pem)))).toBe(pem);
    expect(keyIn(storedOf(connector, withKey(pem.trim())))).toBe(pem.trim());
  });

  test.each(changedForms)('is accepted with %s, and stored in its usual form', (_name, change) => {
    expect(keyIn(storedOf(connector, withKey(change(pem))))).toBe(pem);
  });

  test('is stored so that it can be read again', () => {
    const stored = storedOf(connector, withKey(changedForms[0]?.[1](pem) ?? ''));
    expect(storedOf(connector, stored)).toEqual(stored);
  });

  const wrong: [cause: RegExp, text: string][] = [
    [/it is empty$/, ''],
    [/it is a public key$/, rsa.publicKey],
    [/it is a certificate request, from which the certificate is made$/, certificateRequest],
    [/the key is encrypted: take its password off$/, sealed],
    [/it is a key of the type ed25519$/, ed25519.privateKey],
    [/it is an EC key of the curve secp384r1$/, p384.privateKey],
    [/it is cut off: the line -----END …----- is missing$/, pem.slice(0, 200)],
    [/its first and last line, .* are missing$/, pem.split('\n').slice(1, -2).join('\n')],
    [/what stands between its first and last line is damaged$/, pem.replace(/\n.{20}/, '\n')],
    [/it is JSON: give the key in it alone$/, JSON.stringify(account)],
    [/it is the name of a file: give its content$/, 'AuthKey_ABCDE12345.p8'],
    [/it is no PEM text$/, 'secret words'],
    [
      /it is a key of OpenSSH$/,
      '-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n',
    ],
  ];

  test.each(wrong)('that is not a credential is refused with the cause: %s', (cause, text) => {
    const error = errorOf(connector, withKey(text));
    expect(error).toMatch(cause);
    expect(error).toMatch(/^(serviceAccount\.private_key|privateKey) must be /);
    // The error contains no part of the text.
    for (const line of text
      .split('\n')
      .filter((one) => one.length > 20 && !one.startsWith('-----')))
      expect(error).not.toContain(line.slice(0, 20));
  });

  test('of another kind is named', () => {
    const other = connector === 'apns' ? rsa.privateKey : p8;
    const kind = connector === 'apns' ? 'it is an RSA key' : 'it is an EC P-256 key';
    expect(errorOf(connector, withKey(other))).toContain(kind);
  });

  test('that is not a text is named', () => {
    for (const value of [5, null, {}, ['x'], true])
      expect(errorOf(connector, withKey(value))).toMatch(
        /^(serviceAccount\.private_key|privateKey) must be a text$/,
      );
  });

  test('is found quickly in a text that only resembles keys', () => {
    const text = '-----BEGIN PRIVATE KEY-----\n'.repeat(7000);
    expect(errorOf(connector, withKey(text))).toContain('must be');
  });
});

describe('a file instead of the members', () => {
  const refused: [connector: ConnectorId, sent: object, error: RegExp][] = [
    [
      'fcm',
      { serviceAccount: { ...account, type: 'external_account' } },
      /^serviceAccount must be .* external_account \(workload identity federation\)/,
    ],
    [
      'fcm',
      { type: 'external_account', audience: 'x' },
      /workload identity federation.*the service account file is needed/,
    ],
    [
      'fcm',
      { serviceAccount: { type: 'authorized_user', refresh_token: 'r' } },
      /authorized_user, the login of a person/,
    ],
    [
      'fcm',
      { serviceAccount: { type: 'impersonated_service_account' } },
      /impersonated_service_account, which holds no key/,
    ],
    [
      'vendor_g',
      { serviceAccount: googleServices },
      /^serviceAccount must be .* google-services\.json, which belongs into the app/,
    ],
    ['fcm', googleServices, /^this is google-services\.json/],
    ['fcm', { serviceAccount: { installed: { client_id: 'x' } } }, /a file of an OAuth client/],
    ['fcm', { serviceAccount: { web: { client_id: 'x' } } }, /a file of an OAuth client/],
    [
      'fcm',
      { apiKey: 'k', authDomain: 'd', projectId: 'p' },
      /the configuration of Firebase for a web app/,
    ],
    ['fcm', { serviceAccount: huaweiAccount }, /a service account file of Huawei/],
    ['fcm', { serviceAccount: agconnect }, /agconnect-services\.json of Huawei/],
    [
      'fcm',
      { serviceAccount: 'text' },
      /^serviceAccount must be the content of a service account file/,
    ],
    [
      'vendor_a',
      agconnect,
      /^appSecret is missing; agconnect-services\.json does not hold the App secret/,
    ],
    [
      'vendor_a',
      { appId: '1', appSecret: 's', serviceAccount: agconnect },
      /^serviceAccount must be another file than agconnect-services\.json/,
    ],
    [
      'vendor_a',
      { appId: '1', appSecret: 's', serviceAccount: account },
      /^serviceAccount must be .* a service account file of Google/,
    ],
    ['vendor_a', account, /^this is a service account file of Google/],
    ['vendor_a', googleServices, /^this is google-services\.json/],
    ...(['apns', 'vendor_b', 'vendor_d', 'vendor_f'] as const).map(
      (id): [ConnectorId, object, RegExp] => [
        id,
        account,
        /^this is a service account file of Google; this gateway takes no such file$/,
      ],
    ),
  ];

  test.each(refused)(
    '%s: the wrong file is refused with the cause (%#)',
    (connector, sent, error) => {
      expect(errorOf(connector, sent)).toMatch(error);
    },
  );

  test('is accepted as it was downloaded', () => {
    const stored = { serviceAccount: { ...account, type: undefined } };
    expect(storedOf('fcm', account)).toEqual(JSON.parse(JSON.stringify(stored)));
    const { type: _type, ...untyped } = account;
    expect(storedOf('fcm', untyped)).toEqual({ serviceAccount: untyped });
    expect(storedOf('fcm', { serviceAccount: JSON.stringify(account) })).toEqual({
      serviceAccount: untyped,
    });
    const added = { appSecret: 's', callbackKey: 'k', callbackUser: 'u', ratePerSecond: 5 };
    expect(storedOf('vendor_a', { ...agconnect, ...added })).toEqual({
      appId: '101234567',
      ...added,
    });
    expect(
      storedOf('vendor_a', {
        appId: '1',
        appSecret: 's',
        serviceAccount: JSON.stringify(huaweiAccount),
      }),
    ).toEqual({
      appId: '1',
      appSecret: 's',
      serviceAccount: huaweiAccount,
    });
  });
});

test.each<[ConnectorId, object, string]>([
  [
    'vendor_f',
    { appId: '0123456789abcdef', clientId: '104000000', clientSecret: 's' },
    'appId must be digits only: it seems to be swapped with clientId',
  ],
  [
    'vendor_f',
    { appId: 'abcdef', clientId: 'x', clientSecret: '104000000' },
    'appId must be digits only: it seems to be swapped with clientSecret',
  ],
  ['vendor_a', { appId: '0123abc', appSecret: '101234567' }, 'swapped with appSecret'],
  [
    'vendor_b',
    { appId: 'QmFzZTY0', appSecret: '2882303761517000000', packageName: 'com.a' },
    'swapped with appSecret',
  ],
  ['vendor_c', { appId: 'abc', appSecret: '100999' }, 'swapped with appSecret'],
  ['vendor_e', { appId: '25509283-aaaa', appKey: '10004', appSecret: 's' }, 'swapped with appKey'],
  ['vendor_f', { appId: '104000000', clientId: '0123', clientSecret: 's' }, 'none'],
  [
    'apns',
    { auth: 'token', ...token, teamId: token.keyId },
    'teamId must not be the keyId: the Team ID stands under "Membership details"',
  ],
])('%s: swapped ids are named (%#)', (connector, sent, error) => {
  expect(errorOf(connector, sent)).toContain(error);
});

describe('a member of the wrong type', () => {
  test.each<[ConnectorId, object, string]>([
    ['apns', {}, 'auth must be "token" or "certificate"'],
    ['apns', { auth: 5 }, 'auth must be "token" or "certificate"'],
    ['apns', { auth: 'key', ...token }, 'auth must be "token" or "certificate"'],
    ['apns', { auth: 'token', ...token, teamId: 5 }, 'teamId must be a string'],
    ['apns', { auth: 'token', ...token, teamId: undefined }, 'teamId is missing'],
    ['apns', { auth: 'token', ...token, topics: 'com.a' }, 'topics must be an array'],
    ['apns', { auth: 'token', ...token, topics: [5] }, 'topics.0 must be a string'],
    [
      'apns',
      { auth: 'token', ...token, environment: 'production' },
      'environment must be one of prod, dev',
    ],
    ['apns', { auth: 'token', ...token, ca: 5 }, 'ca must be a text'],
    [
      'apns',
      { auth: 'certificate', certificate: 5, privateKey: p8, topic: 'a' },
      'certificate must be a string',
    ],
    ['fcm', {}, 'serviceAccount must be the content of a service account file'],
    [
      'fcm',
      { serviceAccount: { ...account, project_id: 5 } },
      'serviceAccount.project_id must be a text',
    ],
    [
      'fcm',
      { serviceAccount: { ...account, token_uri: undefined } },
      'serviceAccount.token_uri must be',
    ],
    ['vendor_a', { appId: 5, appSecret: 's' }, 'appId must be a text'],
    ['vendor_b', { appId: '1', appSecret: 's', packageName: 5 }, 'packageName must be a text'],
    [
      'vendor_b',
      { appId: '1', appSecret: 's', packageName: 'a', region: 'moon' },
      'region must be one of china',
    ],
    ['vendor_d', { appKey: 'k', masterSecret: ['s'] }, 'masterSecret must be a text'],
    ['vendor_e', { appId: '1', appKey: null, appSecret: 's' }, 'appKey must be a text'],
    ['vendor_f', { appId: '1', clientId: '2' }, 'clientSecret is missing'],
    [
      'vendor_c',
      { appId: '1', appSecret: 's', ratePerSecond: 'fast' },
      'ratePerSecond must be a whole number',
    ],
  ])('of %s is named with the expected type (%#)', (connector, sent, error) => {
    expect(errorOf(connector, JSON.parse(JSON.stringify(sent)))).toContain(error);
  });
});

/** Certificates in the forms that editors, environment variables and secret stores produce. */
const connectorsWithCa: [ConnectorId, JsonObject][] = [
  ['apns', apns(p8)],
  ['fcm', fcm(rsa.privateKey)],
  ['vendor_b', { appId: '1', appSecret: 's', packageName: 'com.a' }],
];
describe.each(connectorsWithCa)('certificates in ca of %s', (connector, profile) => {
  let authority: CertificateAuthority;
  let ended: string;
  beforeAll(async () => {
    authority = await openCertificateAuthority();
    const client = { commonName: 'x', validForMs: -3_600_000 };
    ended = (await authority.issueClient(client)).certificate;
  });
  const caOf = (ca: string) => storedOf(connector, { ...profile, ca }).ca;
  const reportOf = (ca: string) =>
    inspectCredentials(connector, storedOf(connector, { ...profile, ca }), systemClock.now());

  test('stay unchanged in their usual form, and are accepted in the others', () => {
    const { certificate } = authority;
    expect(caOf(`${certificate.trim()}\n`)).toBe(`${certificate.trim()}\n`);
    for (const [name, change] of changedForms) {
      const stored = String(caOf(change(`${certificate.trim()}\n${ended.trim()}\n`)));
      expect(stored, name).toBe(`${certificate.trim()}\n${ended.trim()}\n`);
    }
  });

  test('that are no certificates are refused with the cause', () => {
    const sent = (ca: string) => errorOf(connector, { ...profile, ca });
    expect(sent(p8)).toMatch(/^ca must be one or several PEM certificates; it is a private key$/);
    expect(sent('')).toMatch(/; it is empty$/);
    expect(sent(authority.certificate.slice(0, 90))).toMatch(/; it is cut off/);
    expect(sent(authority.certificate.replace(/\n.{9}/, '\n'))).toMatch(/ is damaged$/);
  });

  test('are refused if all have expired; an expired one among others is a problem', () => {
    expect(reportOf(authority.certificate)).not.toHaveProperty('refusal');
    expect(reasonText(reportOf(ended).refusal ?? '')).toMatch(
      /^A certificate in ca expired on [\d-]+: replace it\.$/,
    );
    const both = reportOf(`${authority.certificate}\n${ended}`);
    expect(both).not.toHaveProperty('refusal');
    expect(both.problems).toEqual([expect.stringMatching(/^A certificate in ca expired/)]);
  });
});

describe('a bundle of certificates and keys', () => {
  const dayMs = 86_400_000;
  let authority: CertificateAuthority;
  let short: KeyPairPem;
  let long: KeyPairPem;
  let expired: KeyPairPem;
  let other: KeyPairPem;

  beforeAll(async () => {
    authority = await openCertificateAuthority();
    const issue = (userId: string, days: number) =>
      authority.issueClient({ commonName: userId, userId, validForMs: days * dayMs });
    [short, long, expired, other] = await Promise.all([
      issue(topic, 30),
      issue(topic, 300),
      issue(topic, -0.5),
      issue('com.example.other', 3000),
    ]);
  });

  const sentOf = (
    certificates: KeyPairPem[],
    keys: KeyPairPem[],
    more: JsonObject = {},
  ): JsonObject => ({
    auth: 'certificate',
    certificate: certificates.map(({ certificate }) => certificate).join('\n'),
    privateKey: keys.map(({ privateKey }) => privateKey).join('\n'),
    topic,
    ...more,
  });
  const chosen = (sent: JsonObject): string => {
    const { certificate, privateKey } = storedOf('apns', sent);
    const pairs = { short, long, expired, other };
    const names = Object.entries(pairs)
      .filter(([, pair]) =>
        String(certificate).includes(pair.certificate.trim().split('\n')[3] ?? '-'),
      )
      .filter(([, pair]) =>
        String(privateKey).includes(pair.privateKey.trim().split('\n')[1] ?? '-'),
      )
      .map(([name]) => name);
    return names.join(' ');
  };

  test('gives the pair that is valid longest, in any order', () => {
    for (const certificates of [
      [short, long, expired],
      [expired, long, short],
      [long, short, expired],
    ])
      for (const keys of [
        [short, long, expired],
        [expired, short, long],
      ])
        expect(chosen(sentOf(certificates, keys))).toBe('long');
    expect(chosen(sentOf([short, long, expired], [short, expired]))).toBe('short');
    expect(chosen(sentOf([short, expired], [short, long, expired]))).toBe('short');
  });

  test('gives the pair of the topic, even if another pair is valid longer', () => {
    expect(chosen(sentOf([other, short], [other, short]))).toBe('short');
    expect(chosen(sentOf([other, short], [other, short], { topic: 'com.example.other' }))).toBe(
      'other',
    );
    expect(chosen(sentOf([other, short], [other, short], { topic: 'com.example.third' }))).toBe(
      'other',
    );
  });

  test('gives the pair of the environment, even if another pair is valid longer', async () => {
    const client = { commonName: topic, userId: topic };
    const production = await authority.issueClient({
      ...client,
      environmentExtension: 2,
      validForMs: 90 * dayMs,
    });
    const development = await authority.issueClient({ ...client, environmentExtension: 1 });
    const pairs = [production, development];
    const stored = (environment: Json) =>
      String(storedOf('apns', sentOf(pairs, pairs, { environment })).privateKey).trim();
    expect(stored('prod')).toBe(production.privateKey.trim());
    expect(stored('dev')).toBe(development.privateKey.trim());
    const problems = (pair: KeyPairPem, more?: JsonObject) =>
      inspectCredentials('apns', storedOf('apns', sentOf([pair], [pair], more)), systemClock.now())
        .problems;
    const only = reason('certificateEnvironment', { environment: 'dev' });
    expect(problems(development)).toEqual([only]);
    expect(problems(development, { environment: 'prod' })).toEqual([only]);
    expect(problems(development, { environment: 'dev' })).toEqual([]);
    expect(problems(production)).toEqual([]);
  });

  test('may be in one member, with everything in any order', () => {
    const whole = [
      long.privateKey,
      expired.certificate,
      short.certificate,
      expired.privateKey,
      long.certificate,
    ].join('');
    expect(chosen({ ...sentOf([], []), certificate: whole, privateKey: whole })).toBe('long');
    for (const [, change] of changedForms)
      expect(
        chosen({ ...sentOf([], []), certificate: change(whole), privateKey: change(whole) }),
      ).toBe('long');
  });

  test('keeps the certificates of authorities after the certificate', () => {
    const { certificate } = storedOf('apns', sentOf([authority, long, short], [short]));
    const blocks = String(certificate).match(/-----BEGIN CERTIFICATE-----/g);
    expect(blocks).toHaveLength(2);
    expect(String(certificate).indexOf(short.certificate.split('\n')[3] ?? '-')).toBeGreaterThan(0);
  });

  test('is stored so that it can be read again', () => {
    const stored = storedOf('apns', sentOf([short, long, expired], [expired, short, long]));
    expect(storedOf('apns', stored)).toEqual(stored);
  });

  test('with only expired certificates is read and reported as unusable', () => {
    const stored = storedOf('apns', sentOf([expired], [expired]));
    const report = inspectCredentials('apns', stored, systemClock.now());
    expect(reasonText(report.refusal ?? '')).toMatch(
      /^The certificate expired on \d{4}-\d\d-\d\d: upload a new one\.$/,
    );
    expect(
      inspectCredentials('apns', storedOf('apns', sentOf([short], [short])), systemClock.now()),
    ).not.toHaveProperty('refusal');
  });

  test('without a pair, or without certificates or keys, is refused with the cause', () => {
    expect(errorOf('apns', sentOf([long, short], [other]))).toBe(
      'privateKey does not belong to certificate',
    );
    const causes: [JsonObject, RegExp][] = [
      [
        { certificate: rsa.privateKey },
        /^certificate must be a PEM certificate; it is a private key$/,
      ],
      [{ certificate: certificateRequest }, /^certificate must be .*; it is a certificate request/],
      [{ certificate: '' }, /^certificate must be .*; it is empty$/],
      [{ certificate: 'push.p12' }, /^certificate must be .*; it is the name of a file/],
      [
        { privateKey: long.certificate },
        /^privateKey must be an unencrypted private key in PEM; it is a certificate$/,
      ],
      [
        { privateKey: sealed },
        /^privateKey must be .*; the key is encrypted: take its password off$/,
      ],
      [{ privateKey: rsa.publicKey }, /^privateKey must be .*; it is a public key$/],
    ];
    for (const [more, error] of causes)
      expect(errorOf('apns', { ...sentOf([long], [long]), ...more })).toMatch(error);
  });

  test('not from Apple, or of another bundle id, is a problem but not refused', async () => {
    const plain = await authority.issueClient({ commonName: 'me' });
    const problemsOf = (sent: JsonObject) =>
      inspectCredentials('apns', storedOf('apns', sent), systemClock.now()).problems;
    expect(problemsOf(sentOf([plain], [plain]))).toEqual([
      expect.stringMatching(/^The certificate names no bundle id/),
    ]);
    expect(problemsOf(sentOf([other], [other]))).toEqual([
      expect.stringMatching(/^The certificate is for another bundle id/),
    ]);
    expect(problemsOf(sentOf([long], [long]))).toEqual([]);
    expect(problemsOf(sentOf([long], [long], { topic: `${topic}.voip` }))).toEqual([]);
  });
});
