import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { dayMs } from '../../shared/clock.ts';

/** Tags of ASN.1 (X.690 8). */
const tag = { integer: 2, bits: 3, bytes: 4, oid: 6, text: 12, time: 23, sequence: 0x30, set: 0x31 };
/** ecdsa-with-SHA256, commonName, subjectAltName. */
const oid = { signature: '2a8648ce3d040302', name: '550403', names: '551d11' };

/** Encodes a value of less than 64 KiB in DER. */
function der(type: number, ...parts: Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >>> 8, length & 0xff];
  return Buffer.concat([Buffer.from([type, ...size]), content]);
}

const oidOf = (hex: string): Buffer => der(tag.oid, Buffer.from(hex, 'hex'));
const algorithm = der(tag.sequence, oidOf(oid.signature));

/** YYMMDDhhmmssZ (RFC 5280 4.1.2.5.1). */
const timeOf = (atMs: number): Buffer =>
  der(tag.time, Buffer.from(`${new Date(atMs).toISOString().replace(/\D/g, '').slice(2, 14)}Z`));

/**
 * Creates a key and a certificate for a TLS server on 127.0.0.1 that it signs itself (RFC 5280), valid from yesterday until
 * tomorrow. Encoded here, because a certificate library would stay in the memory of every dispatcher for one certificate of
 * fixed form.
 */
export function selfSignedCertificate(nowMs: number): { certificate: string; privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const label = Buffer.from(`Carillon trial ${randomBytes(8).toString('hex')}`);
  const name = der(tag.sequence, der(tag.set, der(tag.sequence, oidOf(oid.name), der(tag.text, label))));
  const loopback = der(tag.sequence, der(0x87, Buffer.from([127, 0, 0, 1])));
  const extension = der(tag.sequence, oidOf(oid.names), der(tag.bytes, loopback));
  const signed = der(
    tag.sequence,
    der(0xa0, der(tag.integer, Buffer.from([2]))),
    der(tag.integer, Buffer.from([1]), randomBytes(8)),
    algorithm,
    name,
    der(tag.sequence, timeOf(nowMs - dayMs), timeOf(nowMs + dayMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(tag.sequence, extension)),
  );
  const signature = der(tag.bits, Buffer.from([0]), sign('sha256', signed, privateKey));
  const whole = der(tag.sequence, signed, algorithm, signature);
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    privateKey,
  };
}
