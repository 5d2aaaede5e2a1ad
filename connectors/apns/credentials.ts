import { type KeyObject, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { dayMs } from '../../shared/clock.ts';
import { reason } from '../../shared/domain/reasons.ts';
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
  keptForm,
  maxPemChars,
  privateKeysIn,
  readPrivateKey,
} from '../contract/pem.ts';

// Apple's push certificates: bundle id, topics, and the pair of certificate and key
// (protocol/apns.md#certificates).

/** A certificate and its private key. */
interface CertificatePair {
  certificate: X509Certificate;
  key: KeyObject;
}

/** Returns the bundle id of a certificate: the UID of its subject. Undefined without one. */
export const bundleIdOf = ({ subject }: X509Certificate): string | undefined =>
  /^UID=(.+)$/m.exec(subject ?? '')?.[1];

/**
 * Returns the topics that a certificate lists; null where it lists none, or its list cannot be
 * read: APNs decides then. Push types with a suffix have topics of their own.
 */
function topicsIn(certificate: X509Certificate): string[] | null {
  const topics = topicLists.flatMap((oid) => topicsBehind(certificate.raw, oid));
  const bundleId = bundleIdOf(certificate);
  // A list without the bundle id itself was not read as it is meant.
  return topics.length > 0 && (bundleId === undefined || topics.includes(bundleId)) ? topics : null;
}

/** Apple's extensions 1.2.840.113635.100.6.3.4 and .6.3.6, as DER writes their ids. */
const topicLists = [4, 6].map((last) => Buffer.from(`060a2a864886f7636406030${last}`, 'hex'));

const tags = { boolean: 0x01, octets: 0x04, text: 0x0c, sequence: 0x30 };

/**
 * Reads the texts of an extension: a sequence of topics, each followed by a sequence of its kinds.
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

/** Element of DER: its tag, and where its content begins and ends. */
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

/** Apple's extensions of a certificate for an environment; the certificates of today have both. */
const environmentMarks = {
  dev: '060a2a864886f76364060301',
  prod: '060a2a864886f76364060302',
} as const;

type ApnsEnvironment = keyof typeof environmentMarks;

/**
 * Returns the environments that a certificate names; none where it names none, which APNs decides
 * then.
 */
const environmentsIn = ({ raw }: X509Certificate): ApnsEnvironment[] =>
  (['dev', 'prod'] as const).filter((one) =>
    raw.includes(Buffer.from(environmentMarks[one], 'hex')),
  );

interface Wanted {
  topic?: string | undefined;
  environment?: ApnsEnvironment | undefined;
}

/**
 * Returns the pair to use among all certificates and keys of a file: key and certificate belong
 * together, the certificate serves the topic and the environment, and it is valid longest.
 * Undefined without a pair.
 */
export function bestPair(
  certificates: readonly X509Certificate[],
  keys: readonly KeyObject[],
  { environment, topic }: Wanted,
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
 * Returns 2 for a certificate that serves a topic, by its list or by its bundle id; 1 where one of
 * them names the app, and the other a push type of it; 0 for another bundle id.
 */
function relationOf(certificate: X509Certificate, topic: string): 0 | 1 | 2 {
  const bundleId = bundleIdOf(certificate);
  if (bundleId === topic || topicsIn(certificate)?.includes(topic)) return 2;
  const isRelated = bundleId?.startsWith(`${topic}.`) || topic.startsWith(`${bundleId}.`);
  return isRelated ? 1 : 0;
}

/** Returns the certificates among others that issued a certificate, from the nearest one on. */
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
    return {
      member: 'privateKey',
      error: `privateKey ${'error' in read ? read.error : 'must be a key'}`,
    };
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
  if (only && !both && only !== environment)
    return [reason('certificateEnvironment', { environment: only })];
  const bundleId = bundleIdOf(leaf);
  if (bundleId === undefined && topicsIn(leaf) === null) return [reason('certificateUnnamed')];
  return relationOf(leaf, wanted) > 0 ? [] : [reason('certificateOfOtherApp')];
}

/** Returns when a certificate expires, in epoch milliseconds. Throws for an invalid certificate. */
export const certificateExpiryMs = (pem: string): number =>
  new X509Certificate(pem).validToDate.getTime();
