import { type KeyObject, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { dayMs, utcDay } from '../../shared/clock.ts';
import { isBaseUrl } from '../../shared/domain/addresses.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { failureCodeOf } from '../../shared/http/result.ts';
import { secureContextTrusting } from '../../shared/http/trust.ts';
import type { CredentialReport } from '../contract/connector.ts';
import {
  inspectTrust,
  privateKeyText,
  proxyUrl,
  trustedCertificates,
} from '../contract/credentials.ts';
import {
  causeOf,
  certificatesIn,
  maxPemChars,
  originalIfUsual,
  privateKeysIn,
  readPrivateKey,
} from '../contract/pem.ts';

// Apple's push certificates (protocol/apns.md#certificates): bundle id, topics, and the pair of
// certificate and key.

/** Certificate with its private key. */
interface CertificatePair {
  certificate: X509Certificate;
  key: KeyObject;
}

/**
 * Returns the bundle id in a certificate, which is the UID of its subject; undefined if there is
 * none.
 */
export const bundleIdOf = ({ subject }: X509Certificate): string | undefined =>
  /^UID=(.+)$/m.exec(subject ?? '')?.[1];

/**
 * Returns the topics that a certificate lists. Returns null if it lists none or the list cannot be
 * read; APNs then decides. Push types with a suffix have separate topics.
 */
function topicsIn(certificate: X509Certificate): string[] | null {
  const topics = topicLists.flatMap((oid) => topicsBehind(certificate.raw, oid));
  const bundleId = bundleIdOf(certificate);
  // A list without the bundle id was probably not parsed correctly.
  return topics.length > 0 && (bundleId === undefined || topics.includes(bundleId)) ? topics : null;
}

/** Object ids of Apple's extensions 1.2.840.113635.100.6.3.4 and .6.3.6, encoded in DER. */
const topicLists = [4, 6].map((last) => Buffer.from(`060a2a864886f7636406030${last}`, 'hex'));

const tags = { boolean: 0x01, octets: 0x04, text: 0x0c, sequence: 0x30 };

/**
 * Reads the strings of an extension: a sequence of topics, each followed by a sequence of its
 * kinds.
 */
function topicsBehind(der: Buffer, oid: Buffer): string[] {
  const at = der.indexOf(oid);
  if (at < 0) return [];
  const next = elementAt(der, at + oid.length);
  const value = next?.tag === tags.boolean ? elementAt(der, next.end) : next;
  const list = value?.tag === tags.octets ? elementAt(der, value.start) : undefined;
  if (!value || list?.tag !== tags.sequence || list.end > value.end) return [];
  const topics: string[] = [];
  for (let from = list.start; from < list.end; ) {
    const element = elementAt(der, from);
    if (!element || element.end > list.end) return [];
    if (element.tag === tags.text) topics.push(der.toString('utf8', element.start, element.end));
    from = element.end;
  }
  return topics;
}

/** DER element: its tag, and start and end of its content. */
interface Element {
  tag: number;
  start: number;
  end: number;
}

function elementAt(der: Buffer, at: number): Element | undefined {
  const [tag, first] = [der[at], der[at + 1]];
  if (tag === undefined || first === undefined) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (lengthBytes > 3 || at + 2 + lengthBytes > der.length) return undefined;
  const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes);
  const start = at + 2 + lengthBytes;
  return start + length <= der.length ? { tag, start, end: start + length } : undefined;
}

/**
 * Apple's extensions that name the environment of a certificate. Current certificates have both.
 */
const environmentOids = {
  dev: '060a2a864886f76364060301',
  prod: '060a2a864886f76364060302',
} as const;

type ApnsEnvironment = keyof typeof environmentOids;

/**
 * Returns the environments that a certificate names. The list is empty if it names none; APNs then
 * decides.
 */
const environmentsIn = ({ raw }: X509Certificate): ApnsEnvironment[] =>
  (['dev', 'prod'] as const).filter((one) =>
    raw.includes(Buffer.from(environmentOids[one], 'hex')),
  );

interface PairCriteria {
  topic?: string | undefined;
  environment?: ApnsEnvironment | undefined;
}

/**
 * Chooses a pair among all certificates and keys of a file. The key must belong to the certificate.
 * Certificates for the topic and environment come first, then the certificates that are valid
 * longest. Returns undefined if there is no pair.
 */
export function bestPair(
  certificates: readonly X509Certificate[],
  keys: readonly KeyObject[],
  { environment, topic }: PairCriteria,
): CertificatePair | undefined {
  const pairs = certificates.flatMap((certificate) => {
    const key = keys.find((one) => certificate.checkPrivateKey(one));
    return key ? [{ certificate, key }] : [];
  });
  const rankOf = (certificate: X509Certificate): number => {
    const environments = environmentsIn(certificate);
    const isOther = environment && environments.length > 0 && !environments.includes(environment);
    const topicRank = topic === undefined ? 0 : relationOf(certificate, topic);
    return 2 * topicRank + (isOther ? 0 : 1);
  };
  const [best] = pairs.sort(
    ({ certificate: one }, { certificate: other }) =>
      rankOf(other) - rankOf(one) || other.validToDate.getTime() - one.validToDate.getTime(),
  );
  return best;
}

/**
 * Returns 2 if a certificate covers a topic by its list or bundle id. Returns 1 if topic and bundle
 * id differ only by a suffix, so that they may belong to the same app. Returns 0 otherwise.
 */
function relationOf(certificate: X509Certificate, topic: string): 0 | 1 | 2 {
  const bundleId = bundleIdOf(certificate);
  if (bundleId === topic || topicsIn(certificate)?.includes(topic)) return 2;
  const isRelated = bundleId?.startsWith(`${topic}.`) || topic.startsWith(`${bundleId}.`);
  return isRelated ? 1 : 0;
}

/** Returns the chain of certificates that issued a certificate, nearest issuer first. */
function issuersOf(
  certificate: X509Certificate,
  others: readonly X509Certificate[],
): X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (let last = certificate; ; ) {
    const issuer = others.find(
      (one) => last.checkIssued(one) && one !== last && !chain.includes(one),
    );
    if (!issuer) return chain;
    chain.push(issuer);
    last = issuer;
  }
}

/** Members of both kinds of credentials (protocol/admin-api.md#credentials-of-a-push-profile). */
const common = {
  /**
   * Gateway that the credentials are for. Absent: both gateways, and `prod` of the push chooses the
   * gateway.
   */
  environment: z.enum(['prod', 'dev']).optional(),
  endpoint: z.url({ protocol: /^https$/, error: 'endpoint must be an https URL' }).optional(),
  /** Replaces the host and port of the management server of broadcast channels. */
  managementEndpoint: z
    .url({ protocol: /^https$/, error: 'managementEndpoint must be an https URL' })
    .max(2048)
    .refine((text) => isBaseUrl(text), 'managementEndpoint must be a base URL')
    .optional(),
  /** Accepted as in all profiles, but unused, because APNs has no token call. */
  authEndpoint: z.url({ protocol: /^https?$/ }).optional(),
  ca: trustedCertificates.optional(),
  transport: z.literal('standard').optional(),
  proxy: proxyUrl.optional(),
};

const tenCharacters = (name: string) =>
  z.string().regex(/^[A-Za-z0-9]{10}$/, `${name} must be the 10 letters and digits Apple gave`);

/** A bundle id, optionally with the suffix of a push type. */
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
    /** May contain several certificates. Only the certificate that fits the topic is stored. */
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
 * Returns the certificate and key that belong together, in PEM. Both members are searched, and
 * their order does not matter. Certificates of authorities stay behind the certificate.
 */
function readPair({
  certificate: certificateText,
  privateKey,
  environment,
  topic: requestedTopic,
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
    return {
      member: 'privateKey',
      error: `privateKey ${'error' in read ? read.error : 'must be a key'}`,
    };
  }
  const best = bestPair(
    certificates,
    keys.map(({ key }) => key),
    { environment, topic: requestedTopic },
  );
  if (!best) return { member: 'privateKey', error: 'privateKey does not belong to certificate' };
  const pem = keys.find(({ key }) => key.equals(best.key))?.pem ?? privateKey;
  const problem = tlsProblem({ cert: String(best.certificate), key: pem });
  if (problem !== null)
    return { member: 'certificate', error: `certificate cannot be used for TLS (${problem})` };
  const chain = issuersOf(best.certificate, certificates).map(String).join('');
  return {
    pair: {
      certificate: originalIfUsual(certificateText, `${best.certificate}${chain}`),
      privateKey: originalIfUsual(privateKey, pem),
    },
  };
}

/**
 * Returns why OpenSSL does not use a certificate and its key, for example because the key is too
 * short; null if it uses them. Such credentials would make each connection throw.
 */
function tlsProblem(pair: { cert: string; key: string }): string | null {
  try {
    secureContextTrusting(undefined, pair);
    return null;
  } catch (error) {
    return failureCodeOf(error) ?? 'ERR_SSL';
  }
}

export const apnsCredentials = z.discriminatedUnion('auth', [token, certificate], {
  error: 'auth must be "token" or "certificate"',
});

export type ApnsCredentials = z.infer<typeof apnsCredentials>;

/** Returns the topics that the credentials may send to. */
export const topicsOf = (credentials: ApnsCredentials): readonly string[] =>
  credentials.auth === 'token' ? credentials.topics : [credentials.topic];

/**
 * Topics of certificates by PEM text. Parsing a certificate takes longer than a push to one device.
 */
const topicsByCertificate = new Map<string, string[] | null>();

/** Returns the topics that a profile's certificate lists; null if it lists none. */
export function certificateTopicsOf({
  certificate: pem,
}: Extract<ApnsCredentials, { auth: 'certificate' }>): readonly string[] | null {
  const cached = topicsByCertificate.get(pem);
  if (cached !== undefined) return cached;
  if (topicsByCertificate.size >= maxCachedCertificates) topicsByCertificate.clear();
  const topics = topicsIn(new X509Certificate(pem));
  topicsByCertificate.set(pem, topics);
  return topics;
}

const maxCachedCertificates = 1000;

/**
 * How long before the expiry of a certificate a problem is reported. Apple's certificates are valid
 * for a year.
 */
const warnBeforeMs = 30 * dayMs;

/** Reports on the credentials. `nowMs` is in epoch milliseconds. */
export function inspectApns(credentials: ApnsCredentials, nowMs: number): CredentialReport {
  const trust = inspectTrust(credentials.ca, nowMs);
  if (credentials.auth === 'token') return { kind: 'token', ...trust };
  const { validFromDate, validToDate } = new X509Certificate(credentials.certificate);
  const leftMs = validToDate.getTime() - nowMs;
  const day = utcDay(validToDate.getTime());
  const expired = reason('certificateEnded', { day });
  const problems = leftMs <= 0 ? [expired] : originProblems(credentials);
  if (leftMs > 0 && leftMs < warnBeforeMs) problems.push(reason('certificateEnds', { day }));
  if (validFromDate.getTime() > nowMs)
    problems.push(reason('certificateNotYet', { day: utcDay(validFromDate.getTime()) }));
  const refusal = leftMs <= 0 ? expired : trust.refusal;
  return {
    kind: 'certificate',
    expiresAtMs: Math.min(validToDate.getTime(), trust.expiresAtMs ?? Number.POSITIVE_INFINITY),
    problems: [...problems, ...trust.problems],
    ...(refusal === undefined ? {} : { refusal }),
  };
}

/**
 * Returns problems of a certificate that does not look like Apple's certificate for the topic. APNs
 * decides.
 */
function originProblems({
  certificate: pem,
  environment = 'prod',
  topic: requestedTopic,
}: Extract<ApnsCredentials, { auth: 'certificate' }>): string[] {
  const leaf = new X509Certificate(pem);
  const [only, both] = environmentsIn(leaf);
  if (only && !both && only !== environment)
    return [reason('certificateEnvironment', { environment: only })];
  const bundleId = bundleIdOf(leaf);
  if (bundleId === undefined && topicsIn(leaf) === null) return [reason('certificateUnnamed')];
  return relationOf(leaf, requestedTopic) > 0 ? [] : [reason('certificateOfOtherApp')];
}

/**
 * Returns when a certificate expires, in epoch milliseconds. Throws if the certificate is invalid.
 */
export const certificateExpiryMs = (pem: string): number =>
  new X509Certificate(pem).validToDate.getTime();
