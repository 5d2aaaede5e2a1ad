/**
 * Creates certificates at run time: a CA, server certificates for loopback, and client certificates
 * for gateways that authenticate clients by them. Needs no openssl binary and writes no files.
 */
import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import forge from 'node-forge';
import { systemClock } from '../../../shared/clock.ts';

const { asn1, pki } = forge;
type Asn1 = forge.asn1.Asn1;

/** Object id of the attribute UID (RFC 4519 2.39). */
const userIdOid = '0.9.2342.19200300.100.1.1';
const ecdsaWithSha256Oid = '1.2.840.10045.4.3.2';
const dayMs = 86_400_000;

/** A certificate and its private key (PKCS#8), both in PEM. */
export interface KeyPairPem {
  certificate: string;
  privateKey: string;
}

export interface CertificateAuthority extends KeyPairPem {
  /**
   * Issues a certificate for a TLS server with these names and addresses; `localhost`, 127.0.0.1
   * and ::1 by default.
   */
  issueServer(names?: string[]): Promise<KeyPairPem>;
  /**
   * Issues a certificate for a client. `userId` becomes the subject's UID, where Apple writes the
   * bundle id.
   */
  issueClient(client: ClientRequest): Promise<KeyPairPem>;
}

export interface ClientRequest {
  commonName: string;
  userId?: string;
  validForMs?: number;
  /** Topics for Apple's extension that lists the topics of a push certificate. */
  topics?: readonly string[];
  /** Number of Apple's extension for an environment: 1 for development, 2 for production. */
  environmentExtension?: 1 | 2;
}

/**
 * Creates a CA, or loads it from `pem`. Each CA has a unique name. If two CAs had the same name,
 * OpenSSL would try the wrong key, and the error would end the connection.
 */
export async function openCertificateAuthority(pem?: KeyPairPem): Promise<CertificateAuthority> {
  const own = pem ?? selfSignedAuthority();
  const issuer = {
    name: nameIn(new X509Certificate(own.certificate).raw),
    key: createPrivateKey(own.privateKey),
  };
  return {
    ...own,
    issueServer: async (names = ['localhost', '127.0.0.1', '::1']) =>
      issue({
        issuer,
        subject: [{ shortName: 'CN', value: 'Carillon sandbox gateway' }],
        extensions: [
          ...leafExtensions,
          serverUsage,
          { name: 'subjectAltName', altNames: names.map(alternativeName) },
        ],
      }),
    issueClient: async ({
      commonName,
      environmentExtension,
      topics,
      userId,
      validForMs = 365 * dayMs,
    }) =>
      issue({
        issuer,
        subject: [...userIdOf(userId), { shortName: 'CN', value: commonName }],
        // A negative `validForMs` creates an expired certificate.
        notAfterMs: systemClock.now() + validForMs,
        extensions: [
          ...leafExtensions,
          clientUsage,
          ...(environmentExtension
            ? [extension(`1.2.840.113635.100.6.3.${environmentExtension}`, emptyValue)]
            : []),
          ...(topics ? [extension(topicListOid, topicList(topics))] : []),
        ],
      }),
  };
}

export interface CertificateRequest {
  subject: forge.pki.CertificateField[];
  /** By default, the certificate is valid from yesterday for a year. */
  notBeforeMs?: number;
  notAfterMs?: number;
  extensions?: object[];
  /** Signs the certificate. If absent, the certificate is self-signed. */
  issuer?: { name: Asn1; key: KeyObject };
}

const leafExtensions = [{ name: 'basicConstraints', cA: false, critical: true }];
const serverUsage = { name: 'extKeyUsage', serverAuth: true };
const clientUsage = { name: 'extKeyUsage', clientAuth: true };
const alternativeName = (name: string) =>
  /^[\d.]+$|:/.test(name) ? { type: 7, ip: name } : { type: 2, value: name };
const extension = (id: string, value: Buffer) => ({
  id,
  critical: false,
  value: value.toString('binary'),
});

/** Returns the attribute of the subject in which Apple writes the bundle id. */
export const userIdOf = (userId: string | undefined): forge.pki.CertificateField[] =>
  userId === undefined ? [] : [{ type: userIdOid, value: userId }];

const selfSignedAuthority = (): KeyPairPem =>
  issue({
    subject: [{ shortName: 'CN', value: `Carillon sandbox CA ${randomBytes(8).toString('hex')}` }],
    notAfterMs: systemClock.now() + 3650 * dayMs,
    extensions: [
      { name: 'basicConstraints', cA: true, pathLenConstraint: 0, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });

/**
 * Creates a P-256 key and its certificate. node-forge encodes names, times and extensions. It
 * supports only RSA, so the parts with keys and signatures come from `node:crypto`.
 */
export function issue({
  subject,
  notBeforeMs = systemClock.now() - dayMs,
  notAfterMs = systemClock.now() + 365 * dayMs,
  extensions = [],
  issuer,
}: CertificateRequest): KeyPairPem {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const draft = pki.createCertificate();
  // The first bit is 0, so the number is positive.
  draft.serialNumber = `01${randomBytes(8).toString('hex')}`;
  draft.validity.notBefore = new Date(notBeforeMs);
  draft.validity.notAfter = new Date(notAfterMs);
  draft.setSubject(subject.map((field) => ({ ...field, valueTagClass: utf8 })));
  draft.setExtensions(extensions);
  Object.assign(draft, placeholders);
  const [content = sequence([])] = partsOf(pki.certificateToAsn1(draft));
  const [version, serial, , , validity, name, , ...rest] = partsOf(content);
  content.value = [
    version,
    serial,
    signatureAlgorithm(),
    issuer?.name ?? name,
    validity,
    name,
  ].flatMap((part) => part ?? []);
  content.value.push(fromDer(publicKey.export({ type: 'spki', format: 'der' })), ...rest);
  const signature = sign('sha256', toDer(content), issuer?.key ?? privateKey);
  const bits = element(asn1.Type.BITSTRING, `\0${signature.toString('binary')}`);
  const certificate = sequence([content, signatureAlgorithm(), bits]);
  return {
    certificate: new X509Certificate(toDer(certificate)).toString(),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** Parts of a draft with keys and signatures. The real parts replace them. */
const placeholders = {
  publicKey: pki.setRsaPublicKey(new forge.jsbn.BigInteger('3'), new forge.jsbn.BigInteger('3')),
  siginfo: { algorithmOid: ecdsaWithSha256Oid, parameters: null },
  signatureOid: ecdsaWithSha256Oid,
  signature: '',
};
/** The types of node-forge have another enumeration here. */
const utf8: number = asn1.Type.UTF8;

const fromDer = (der: Buffer): Asn1 => asn1.fromDer(der.toString('binary'));
const toDer = (value: Asn1): Buffer => Buffer.from(asn1.toDer(value).getBytes(), 'binary');
const element = (type: forge.asn1.Type, value: string): Asn1 =>
  asn1.create(asn1.Class.UNIVERSAL, type, false, value);
const sequence = (parts: Asn1[]): Asn1 =>
  asn1.create(asn1.Class.UNIVERSAL, asn1.Type.SEQUENCE, true, parts);
const signatureAlgorithm = (): Asn1 =>
  sequence([element(asn1.Type.OID, asn1.oidToDer(ecdsaWithSha256Oid).getBytes())]);
const partsOf = ({ value }: Asn1): Asn1[] => (typeof value === 'string' ? [] : value);

/**
 * Returns the signed parts of a certificate (DER): version, serial number, algorithm, issuer,
 * validity, subject, …
 */
const signedParts = (der: Buffer): Asn1[] => partsOf(fromDer(der)).slice(0, 1).flatMap(partsOf);

/** Returns the subject's name of a certificate (DER). */
function nameIn(der: Buffer): Asn1 {
  const name = signedParts(der)[5];
  if (!name) throw new Error('The certificate has no subject.');
  return name;
}

/** NULL in DER. */
const emptyValue = Buffer.from([5, 0]);

/** Object id of Apple's extension that lists the topics of a push certificate. */
export const topicListOid = '1.2.840.113635.100.6.3.6';

/** Returns the topics that a certificate (DER) lists; null if it has no such extension. */
export function listedTopics(der: Buffer): string[] | null {
  const oid = asn1.oidToDer(topicListOid).getBytes();
  const extensions = signedParts(der).slice(7).flatMap(partsOf).flatMap(partsOf).map(partsOf);
  const value = extensions.find(([id]) => id?.value === oid)?.at(-1)?.value;
  if (typeof value !== 'string') return null;
  const list = Buffer.from(value, 'binary');
  // A string is a tag, a length below 128, and its characters. Strings with a dot are topics.
  const starts = [...list.keys()].filter((at) => list[at] === 0x0c);
  const texts = starts.map((at) => list.toString('latin1', at + 2, at + 2 + (list[at + 1] ?? 0)));
  return texts.filter((text) => /^[\w-]+(\.[\w-]+)+$/.test(text));
}

/** Encodes topics like Apple: a sequence of strings, each followed by a sequence of its kinds. */
function topicList(topics: readonly string[]): Buffer {
  const entry = (tag: number, content: Buffer) => {
    const { length } = content;
    const size =
      length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
    return Buffer.concat([Buffer.from([tag, ...size]), content]);
  };
  const text = (value: string) => entry(0x0c, Buffer.from(value));
  const entries = topics.flatMap((topic) => [text(topic), entry(0x30, text('app'))]);
  return entry(0x30, Buffer.concat(entries));
}
