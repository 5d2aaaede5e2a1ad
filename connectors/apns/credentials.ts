import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { dayMs } from '../../shared/clock.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { CredentialReport } from '../contract/connector.ts';
import { inspectTrust, privateKeyText, proxyUrl, trustedCertificates } from '../contract/credentials.ts';
import {
  causeOf,
  certificatesIn,
  keptForm,
  maxPemChars,
  privateKeysIn,
  readPrivateKey,
} from '../contract/pem.ts';
import {
  type ApnsEnvironment,
  bestPair,
  bundleIdOf,
  environmentsIn,
  issuersOf,
  relationOf,
  topicsIn,
} from './certificates.ts';

/** Members of both kinds of credentials (protocol/admin-api.md#credentials-of-a-push-profile). */
const common = {
  /** Gateway that the credentials serve; absent: both, by the push's `prod`. */
  environment: z.enum(['prod', 'dev']).optional(),
  endpoint: z.url({ protocol: /^https$/, error: 'endpoint must be an https URL' }).optional(),
  /** Accepted like in every profile, but unused: APNs has no token call. */
  authEndpoint: z.url({ protocol: /^https?$/ }).optional(),
  ca: trustedCertificates.optional(),
  transport: z.literal('standard').optional(),
  proxy: proxyUrl.optional(),
};

const tenCharacters = (name: string) =>
  z.string().regex(/^[A-Za-z0-9]{10}$/, `${name} must be the 10 letters and digits Apple gave`);

/** A bundle id, possibly with the suffix of a push type. */
const topic = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/, 'a topic is a bundle id');

const token = z
  .strictObject({
    auth: z.literal('token'),
    teamId: tenCharacters('teamId'),
    keyId: tenCharacters('keyId'),
    privateKey: privateKeyText('privateKey', 'P-256'),
    topics: z.array(topic).min(1, 'topics must name at least one bundle id').max(400),
    ...common,
  })
  .refine(({ keyId, teamId }) => keyId !== teamId, {
    path: ['teamId'],
    message:
      'teamId must not be the keyId: the Team ID stands under "Membership details", the Key ID beside the key and in the name of its file',
  });

const certificate = z
  .strictObject({
    auth: z.literal('certificate'),
    /** May hold several certificates, of which the one that fits is kept. */
    certificate: z.string().max(maxPemChars),
    privateKey: z.string().max(maxPemChars),
    topic,
    ...common,
  })
  .transform((given, context) => {
    const read = readPair(given);
    if ('pair' in read) return { ...given, ...read.pair };
    context.addIssue({ code: 'custom', path: [read.member], message: read.error });
    return z.NEVER;
  });

/**
 * Returns certificate and key in PEM: those that belong together among all that both members hold,
 * in any order. Certificates of authorities stay behind the certificate.
 */
function readPair({
  certificate: certificateText,
  privateKey,
  environment,
  topic: wanted,
}: {
  certificate: string;
  privateKey: string;
  environment?: ApnsEnvironment | undefined;
  topic: string;
}):
  | { pair: { certificate: string; privateKey: string } }
  | { member: 'certificate' | 'privateKey'; error: string } {
  const texts = [certificateText, privateKey];
  const certificates = texts.map(certificatesIn).flatMap((found) => found ?? []);
  const keys = texts.flatMap(privateKeysIn);
  if (certificates.length === 0) {
    const cause = causeOf(certificateText, (label) => label === 'CERTIFICATE');
    return { member: 'certificate', error: `certificate must be a PEM certificate; ${cause}` };
  }
  if (keys.length === 0) {
    const read = readPrivateKey(privateKey, 'any');
    return { member: 'privateKey', error: `privateKey ${'error' in read ? read.error : 'must be a key'}` };
  }
  const best = bestPair(
    certificates,
    keys.map(({ key }) => key),
    { environment, topic: wanted },
  );
  if (!best) return { member: 'privateKey', error: 'privateKey does not belong to certificate' };
  const pem = keys.find(({ key }) => key.equals(best.key))?.pem ?? privateKey;
  const chain = issuersOf(best.certificate, certificates).map(String).join('');
  return {
    pair: {
      certificate: keptForm(certificateText, `${best.certificate}${chain}`),
      privateKey: keptForm(privateKey, pem),
    },
  };
}

export const apnsCredentials = z.discriminatedUnion('auth', [token, certificate], {
  error: 'auth must be "token" or "certificate"',
});

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
  const trust = inspectTrust(credentials.ca, nowMs);
  if (credentials.auth === 'token') return { kind: 'token', ...trust };
  const { validFromDate, validToDate } = new X509Certificate(credentials.certificate);
  const leftMs = validToDate.getTime() - nowMs;
  const day = dayOf(validToDate);
  const expired = reason('certificateEnded', { day });
  const problems = leftMs <= 0 ? [expired] : originProblems(credentials);
  if (leftMs > 0 && leftMs < warnBeforeMs) problems.push(reason('certificateEnds', { day }));
  if (validFromDate.getTime() > nowMs)
    problems.push(reason('certificateNotYet', { day: dayOf(validFromDate) }));
  const refusal = leftMs <= 0 ? expired : trust.refusal;
  return {
    kind: 'certificate',
    expiresAtMs: Math.min(validToDate.getTime(), trust.expiresAtMs ?? Number.POSITIVE_INFINITY),
    problems: [...problems, ...trust.problems],
    ...(refusal === undefined ? {} : { refusal }),
  };
}

const dayOf = (date: Date): string => date.toISOString().slice(0, 10);

/** Says where a certificate does not look like one of Apple's for the topic; APNs decides. */
function originProblems({
  certificate: pem,
  environment = 'prod',
  topic: wanted,
}: Extract<ApnsCredentials, { auth: 'certificate' }>): string[] {
  const leaf = new X509Certificate(pem);
  const [only, both] = environmentsIn(leaf);
  if (only && !both && only !== environment) return [reason('certificateEnvironment', { environment: only })];
  const bundleId = bundleIdOf(leaf);
  if (bundleId === undefined && topicsIn(leaf) === null) return [reason('certificateUnnamed')];
  return relationOf(leaf, wanted) > 0 ? [] : [reason('certificateOfOtherApp')];
}

/** Returns when a certificate expires, in epoch milliseconds. Throws for an invalid certificate. */
export const certificateExpiryMs = (pem: string): number => new X509Certificate(pem).validToDate.getTime();
