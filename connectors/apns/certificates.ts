/**
 * Apple's push certificates: bundle id, topics, and the pair of certificate and key
 * (protocol/apns.md#certificates).
 */
import type { KeyObject, X509Certificate } from 'node:crypto';

/** A certificate and its private key. */
export interface CertificatePair {
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
export function topicsIn(certificate: X509Certificate): string[] | null {
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
const environmentMarks = { dev: '060a2a864886f76364060301', prod: '060a2a864886f76364060302' } as const;

export type ApnsEnvironment = keyof typeof environmentMarks;

/**
 * Returns the environments that a certificate names; none where it names none, which APNs decides
 * then.
 */
export const environmentsIn = ({ raw }: X509Certificate): ApnsEnvironment[] =>
  (['dev', 'prod'] as const).filter((one) => raw.includes(Buffer.from(environmentMarks[one], 'hex')));

export interface Wanted {
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
export function relationOf(certificate: X509Certificate, topic: string): 0 | 1 | 2 {
  const bundleId = bundleIdOf(certificate);
  if (bundleId === topic || topicsIn(certificate)?.includes(topic)) return 2;
  const isRelated = bundleId?.startsWith(`${topic}.`) || topic.startsWith(`${bundleId}.`);
  return isRelated ? 1 : 0;
}

/** Returns the certificates among others that issued a certificate, from the nearest one on. */
export function issuersOf(
  certificate: X509Certificate,
  others: readonly X509Certificate[],
): X509Certificate[] {
  const chain: X509Certificate[] = [];
  for (let last = certificate; ; ) {
    const issuer = others.find((one) => last.checkIssued(one) && one !== last && !chain.includes(one));
    if (!issuer) return chain;
    chain.push(issuer);
    last = issuer;
  }
}
