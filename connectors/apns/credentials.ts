import { type KeyObject, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { dayMs } from '../../shared/clock.ts';
import type { CredentialReport } from '../contract/connector.ts';
import { keyOf, proxyUrl } from '../contract/credentials.ts';
import { topicsIn } from './certificates.ts';

/** Members of both kinds of credentials (protocol/admin-api.md#credentials-of-a-push-profile). */
const common = {
  /** Gateway that the credentials serve; absent: both, by the push's `prod`. */
  environment: z.enum(['prod', 'dev']).optional(),
  endpoint: z.url({ protocol: /^https$/, error: 'endpoint must be an https URL' }).optional(),
  /** Accepted like in every profile, but unused: APNs has no token call. */
  authEndpoint: z.url({ protocol: /^https?$/ }).optional(),
  ca: z
    .string()
    .refine((pem) => certificateOf(pem) !== null, 'ca must be a PEM certificate')
    .optional(),
  transport: z.literal('standard').optional(),
  proxy: proxyUrl.optional(),
};

const tenCharacters = (name: string) =>
  z.string().regex(/^[A-Za-z0-9]{10}$/, `${name} must be the 10 letters and digits Apple gave`);

/** A bundle id, possibly with the suffix of a push type. */
const topic = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/, 'a topic is a bundle id');

const token = z.strictObject({
  auth: z.literal('token'),
  teamId: tenCharacters('teamId'),
  keyId: tenCharacters('keyId'),
  privateKey: z
    .string()
    .refine(
      (pem) => isP256(keyOf(pem)),
      'privateKey must be a PKCS#8 PEM with an EC P-256 key (the .p8 file)',
    ),
  topics: z.array(topic).min(1, 'topics must name at least one bundle id').max(400),
  ...common,
});

const certificate = z
  .strictObject({
    auth: z.literal('certificate'),
    certificate: z
      .string()
      .refine((pem) => certificateOf(pem) !== null, 'certificate must be a PEM certificate'),
    privateKey: z.string().refine((pem) => keyOf(pem) !== null, 'privateKey must be an unencrypted PEM key'),
    topic,
    ...common,
  })
  .refine(({ certificate, privateKey }) => isPair(certificate, privateKey), {
    path: ['privateKey'],
    message: 'privateKey does not belong to certificate',
  });

export const apnsCredentials = z.discriminatedUnion('auth', [token, certificate]);

export type ApnsCredentials = z.infer<typeof apnsCredentials>;

/** Topics these credentials may send to. */
export const topicsOf = (credentials: ApnsCredentials): readonly string[] =>
  credentials.auth === 'token' ? credentials.topics : [credentials.topic];

/** Topics of certificates by their PEM; reading one takes longer than a push to one device. */
const knownTopics = new Map<string, string[] | null>();

/** Returns the topics that a profile's certificate lists; null where it lists none. */
export function certificateTopicsOf({
  certificate: pem,
}: Extract<ApnsCredentials, { auth: 'certificate' }>): readonly string[] | null {
  const known = knownTopics.get(pem);
  if (known !== undefined) return known;
  if (knownTopics.size >= maxKnown) knownTopics.clear();
  const topics = topicsIn(new X509Certificate(pem));
  knownTopics.set(pem, topics);
  return topics;
}

const maxKnown = 1000;

/** Warning time before a certificate expires; Apple's certificates last a year. */
const warnBeforeMs = 30 * dayMs;

/** Reports on the credentials. `nowMs` in epoch milliseconds. */
export function inspectApns(credentials: ApnsCredentials, nowMs: number): CredentialReport {
  if (credentials.auth === 'token') return { kind: 'token', expiresAtMs: null, problems: [] };
  const expiresAtMs = certificateExpiryMs(credentials.certificate);
  const leftMs = expiresAtMs - nowMs;
  const day = new Date(expiresAtMs).toISOString().slice(0, 10);
  const problems: string[] = [];
  if (leftMs <= 0) problems.push(`The certificate expired on ${day}: upload a new one.`);
  else if (leftMs < warnBeforeMs)
    problems.push(`The certificate expires on ${day}: upload a new one before.`);
  return { kind: 'certificate', expiresAtMs, problems };
}

/** Returns when a certificate expires, in epoch milliseconds. Throws for an invalid certificate. */
export const certificateExpiryMs = (pem: string): number => new X509Certificate(pem).validToDate.getTime();

function certificateOf(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem);
  } catch {
    return null;
  }
}

function isP256(key: KeyObject | null): boolean {
  return key?.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1';
}

/** Whether key and certificate match; true if one is malformed, which has its own error. */
function isPair(certificatePem: string, keyPem: string): boolean {
  const parsed = certificateOf(certificatePem);
  const key = keyOf(keyPem);
  return parsed === null || key === null || parsed.checkPrivateKey(key);
}
