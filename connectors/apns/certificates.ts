/** Apple's push certificates: bundle id, topics, and the pair of certificate and key (protocol/apns.md#certificates). */
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
 * Returns the topics that a certificate lists; null where it lists none, or its list cannot be read: APNs decides then. Push
 * types with a suffix have topics of their own.
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

/** Reads the texts of an extension: a sequence of topics, each followed by a sequence of its kinds. */
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

/**
 * Returns the pair to use among all certificates and keys of a file: key and certificate belong together, the certificate
 * serves the topic, and it is valid longest. Undefined without a pair.
 */
export function bestPair(
  certificates: readonly X509Certificate[],
  keys: readonly KeyObject[],
  topic?: string,
): CertificatePair | undefined {
  const pairs = certificates.flatMap((certificate) => {
    const key = keys.find((one) => certificate.checkPrivateKey(one));
    return key ? [{ certificate, key }] : [];
  });
  const serving =
    topic === undefined ? [] : pairs.filter(({ certificate }) => servesTopic(certificate, topic));
  const [best] = (serving.length > 0 ? serving : pairs).sort(
    (one, other) => other.certificate.validToDate.getTime() - one.certificate.validToDate.getTime(),
  );
  return best;
}

/** Returns whether a certificate is one for a topic, by its list or by its bundle id. */
export const servesTopic = (certificate: X509Certificate, topic: string): boolean =>
  bundleIdOf(certificate) === topic || topicsIn(certificate)?.includes(topic) === true;
