import { generateKeyPairSync } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { apnsCredentials, inspectApns } from '../../../connectors/apns/credentials.ts';
import { createApnsCredentials } from '../../../ops/sandbox/apns/server.ts';
import {
  type CertificateAuthority,
  type KeyPairPem,
  openCertificateAuthority,
} from '../../../ops/sandbox/kit/certificates.ts';
import { systemClock } from '../../../shared/clock.ts';
import { topic } from '../../support/gateways/apns.ts';

const { publicKey: _, ...key } = createApnsCredentials();
const token = { auth: 'token', ...key };
let authority: CertificateAuthority;
let client: KeyPairPem;

beforeAll(async () => {
  authority = await openCertificateAuthority();
  client = await authority.issueClient({ commonName: topic, userId: topic });
});

const problemsOf = (value: unknown): string => {
  const result = apnsCredentials.safeParse(value);
  return result.success
    ? 'none'
    : result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
};

describe('credentials', () => {
  test('of a token are accepted with every member of the contract', () => {
    const all = {
      ...token,
      environment: 'dev',
      endpoint: 'https://127.0.0.1:4443/base',
      authEndpoint: 'https://127.0.0.1:4444',
      ca: authority.certificate,
      transport: 'standard',
      proxy: 'http://user:secret@proxy.example:3128',
    };
    expect(apnsCredentials.parse(all)).toEqual(all);
  });

  test('of a certificate are accepted', () => {
    expect(problemsOf({ auth: 'certificate', ...client, topic })).toBe('none');
  });

  test.each([
    ['nothing', {}, /auth/],
    ['an unknown member', { ...token, password: 'x' }, /password/],
    ['no topics', { ...token, topics: [] }, /topics must name at least one/],
    ['a topic with a line break', { ...token, topics: ['a\r\nb'] }, /bundle id/],
    ['a short team id', { ...token, teamId: 'ABC' }, /teamId must be the 10/],
    ['another environment', { ...token, environment: 'staging' }, /environment/],
    ['an endpoint without TLS', { ...token, endpoint: 'http://127.0.0.1' }, /https/],
    ['a proxy that is not an HTTP URL', { ...token, proxy: 'socks5://x' }, /proxy must be an http/],
    [
      'a proxy with a path',
      { ...token, proxy: 'http://x/MY-SECRET-KEY' },
      /proxy must name a host/,
    ],
    [
      'a ca that is not a PEM certificate',
      { ...token, ca: 'x' },
      /ca must be one or several PEM certificates/,
    ],
    ['no key at all', { ...token, privateKey: 'MY-SECRET-KEY' }, /PKCS#8 PEM with an EC P-256/],
  ])('are refused with %s', (_name, value, pattern) => {
    expect(problemsOf(value)).toMatch(pattern);
    expect(problemsOf(value)).not.toMatch(/MY-SECRET-KEY/);
  });

  test('are refused with a key of another kind', () => {
    const pem = (pair: ReturnType<typeof generateKeyPairSync>) =>
      pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const rsa = pem(generateKeyPairSync('rsa', { modulusLength: 2048 }));
    const p384 = pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }));
    for (const privateKey of [rsa, p384])
      expect(problemsOf({ ...token, privateKey })).toMatch(/P-256/);
  });

  test('are refused with a key that is not the certificate’s', async () => {
    const other = await authority.issueClient({ commonName: topic });
    const mixed = {
      auth: 'certificate',
      certificate: client.certificate,
      privateKey: other.privateKey,
      topic,
    };
    expect(problemsOf(mixed)).toMatch(/privateKey does not belong to certificate/);
    expect(problemsOf({ ...mixed, certificate: 'x' })).toMatch(/certificate must be a PEM/);
    expect(problemsOf({ ...mixed, privateKey: 'y' })).toMatch(/privateKey must be/);
  });
});

test('a certificate whose key is too short for TLS is refused', async () => {
  const pem = await readFile(
    new URL('../../fixtures/weak-certificate.pem', import.meta.url),
    'utf8',
  );
  const weak = { auth: 'certificate', certificate: pem, privateKey: pem, topic };
  expect(problemsOf(weak)).toBe(
    'certificate: certificate cannot be used for TLS (ERR_SSL_EE_KEY_TOO_SMALL)',
  );
});

describe('inspection', () => {
  const dayMs = 86_400_000;

  test('of a token reports no expiry', () => {
    expect(inspectApns(apnsCredentials.parse(token), 0)).toEqual({
      kind: 'token',
      expiresAtMs: null,
      problems: [],
    });
  });

  test.each([
    [365, []],
    [10, [expect.stringMatching(/^The certificate expires on \d{4}-/)]],
    [-0.5, [expect.stringMatching(/^The certificate expired on \d{4}-/)]],
  ])('of a certificate with %d days left', async (days, problems) => {
    const pair = await authority.issueClient({
      commonName: topic,
      userId: topic,
      validForMs: days * dayMs,
    });
    const report = inspectApns(
      apnsCredentials.parse({ auth: 'certificate', ...pair, topic }),
      systemClock.now(),
    );
    expect(report).toMatchObject({ kind: 'certificate', problems });
    expect(Math.abs((report.expiresAtMs ?? 0) - systemClock.now() - days * dayMs)).toBeLessThan(
      10_000,
    );
  });
});
