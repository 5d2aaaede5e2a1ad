/**
 * Certificates created at run time: a CA, server certificates for loopback, and client certificates for gateways that
 * authenticate callers by them. Needs no openssl binary and writes no files.
 */
import './reflect.ts';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { systemClock } from '../../../shared/clock.ts';

x509.cryptoProvider.set(webcrypto);

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
/** UID of a subject (RFC 4519 2.39). */
const userIdOid = '0.9.2342.19200300.100.1.1';
const dayMs = 86_400_000;

/** A certificate and its private key (PKCS#8), both PEM. */
export interface KeyPairPem {
  certificate: string;
  privateKey: string;
}

export interface CertificateAuthority extends KeyPairPem {
  /** Issues a certificate for a TLS server on these names and addresses; default `localhost`, 127.0.0.1 and ::1. */
  issueServer(names?: string[]): Promise<KeyPairPem>;
  /** Issues a certificate for a client; `userId` becomes the subject's UID, where Apple writes the bundle id. */
  issueClient(client: ClientRequest): Promise<KeyPairPem>;
}

export interface ClientRequest {
  commonName: string;
  userId?: string;
  validForMs?: number;
  /** Topics in the extension in which Apple lists those of a push certificate. */
  topics?: readonly string[];
  /** Number of Apple's extension for one environment: 1 development, 2 production. */
  environmentMark?: 1 | 2;
}

/**
 * Creates a CA, or loads one from `pem`. Each has a unique name: with two CAs of the same name OpenSSL tries the wrong
 * key, and the error ends the connection.
 */
export async function openCertificateAuthority(pem?: KeyPairPem): Promise<CertificateAuthority> {
  const own = pem ?? (await selfSigned(`Carillon sandbox CA ${randomSerial()}`));
  const issuer = new x509.X509Certificate(own.certificate).subject;
  const signingKey = await importKey(own.privateKey);
  return {
    ...own,
    issueServer: (names = ['localhost', '127.0.0.1', '::1']) =>
      issue(issuer, signingKey, {
        subject: [{ CN: ['Carillon sandbox gateway'] }],
        validForMs: 365 * dayMs,
        purpose: x509.ExtendedKeyUsage.serverAuth,
        names,
      }),
    issueClient: ({ commonName, environmentMark, topics, userId, validForMs = 365 * dayMs }) =>
      issue(issuer, signingKey, {
        subject: [...(userId === undefined ? [] : [{ [userIdOid]: [userId] }]), { CN: [commonName] }],
        validForMs,
        purpose: x509.ExtendedKeyUsage.clientAuth,
        names: [],
        topics,
        environmentMark,
      }),
  };
}

interface CertificateRequest {
  subject: x509.JsonName;
  validForMs: number;
  purpose: x509.ExtendedKeyUsage;
  names: string[];
  topics?: readonly string[] | undefined;
  environmentMark?: number | undefined;
}

async function selfSigned(commonName: string): Promise<KeyPairPem> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: randomSerial(),
    name: `CN=${commonName}`,
    notBefore: new Date(systemClock.now() - dayMs),
    notAfter: new Date(systemClock.now() + 3650 * dayMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  });
  return { certificate: certificate.toString('pem'), privateKey: await exportKey(keys.privateKey) };
}

async function issue(
  issuer: string,
  signingKey: webcrypto.CryptoKey,
  request: CertificateRequest,
): Promise<KeyPairPem> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: randomSerial(),
    subject: request.subject,
    issuer,
    // Starts a day ago, so that a negative `validForMs` makes an expired certificate.
    notBefore: new Date(systemClock.now() - dayMs),
    notAfter: new Date(systemClock.now() + request.validForMs),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.ExtendedKeyUsageExtension([request.purpose]),
      ...(request.names.length > 0 ? [alternativeNames(request.names)] : []),
      ...(request.environmentMark
        ? [new x509.Extension(`1.2.840.113635.100.6.3.${request.environmentMark}`, false, emptyValue)]
        : []),
      ...(request.topics ? [new x509.Extension(topicListOid, false, topicList(request.topics))] : []),
    ],
  });
  return { certificate: certificate.toString('pem'), privateKey: await exportKey(keys.privateKey) };
}

/** NULL in DER. */
const emptyValue = new Uint8Array([5, 0]);

/** Extension in which Apple lists the topics of a push certificate. */
export const topicListOid = '1.2.840.113635.100.6.3.6';

/** Returns the topics that a certificate (DER) lists; null without such an extension. */
export function listedTopics(der: Buffer): string[] | null {
  const value = new x509.X509Certificate(der).getExtension(topicListOid)?.value;
  if (!value) return null;
  const list = Buffer.from(value);
  // A text is a tag, a length below 128 and its characters; those with a dot are topics.
  const starts = [...list.keys()].filter((at) => list[at] === 0x0c);
  const texts = starts.map((at) => list.toString('latin1', at + 2, at + 2 + (list[at + 1] ?? 0)));
  return texts.filter((text) => /^[\w-]+(\.[\w-]+)+$/.test(text));
}

/** Encodes topics as Apple does: a sequence of texts, each followed by a sequence of its kinds. */
function topicList(topics: readonly string[]): Buffer {
  const element = (tag: number, content: Buffer) => {
    const { length } = content;
    const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
    return Buffer.concat([Buffer.from([tag, ...size]), content]);
  };
  const text = (value: string) => element(0x0c, Buffer.from(value));
  const entries = topics.flatMap((topic) => [text(topic), element(0x30, text('app'))]);
  return element(0x30, Buffer.concat(entries));
}

function alternativeNames(names: string[]): x509.SubjectAlternativeNameExtension {
  return new x509.SubjectAlternativeNameExtension(
    names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
  );
}

const randomSerial = (): string => Buffer.from(webcrypto.getRandomValues(new Uint8Array(8))).toString('hex');

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = await webcrypto.subtle.exportKey('pkcs8', key);
  return x509.PemConverter.encode(der, 'PRIVATE KEY');
}

function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = x509.PemConverter.decodeFirst(pem);
  return webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']);
}
