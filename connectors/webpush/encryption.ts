/**
 * Encryption of Web Push messages (RFC 8291 with RFC 8188): one record of `aes128gcm`, with a new
 * key pair and salt for each message.
 */
import { createCipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto';

/** Largest text of a message: push services take bodies of 4096 bytes (RFC 8030, 7.2). */
export const maxTextBytes = 3993;

/** Bytes that encryption adds: a header of 86 bytes, a delimiter and a tag of 16 bytes. */
export const addedBytes = 103;

const recordSize = 4096;
const keyBytes = 65;
const saltBytes = 16;
const headerBytes = saltBytes + 4 + 1 + keyBytes;
const tagBytes = 16;
/** Marks the last record (RFC 8188, section 2). */
const lastRecord = 2;

const keyInfo = Buffer.from('WebPush: info\0');
const contentKeyInfo = Buffer.from('Content-Encoding: aes128gcm\0');
const nonceInfo = Buffer.from('Content-Encoding: nonce\0');

/** Keys of a browser's subscription. */
export interface BrowserKeys {
  /** Uncompressed point on P-256, 65 bytes. */
  publicKey: Buffer;
  /** Authentication secret, 16 bytes. */
  auth: Buffer;
}

/** Random values of a message. Only the test of the RFC's example gives them. */
export interface MessageRandom {
  salt: Buffer;
  /** Private key of the sender, 32 bytes. */
  privateKey: Buffer;
}

/**
 * Encrypts a text for one browser and returns the request body. Throws if the public key is not on
 * the curve.
 */
export function encrypt(text: Buffer, browser: BrowserKeys, random?: MessageRandom): Buffer {
  const pair = createECDH('prime256v1');
  if (random) pair.setPrivateKey(random.privateKey);
  else pair.generateKeys();
  const senderKey = pair.getPublicKey();
  const shared = pair.computeSecret(browser.publicKey);
  const salt = random?.salt ?? randomBytes(saltBytes);
  const secret = Buffer.from(
    hkdfSync(
      'sha256',
      shared,
      browser.auth,
      Buffer.concat([keyInfo, browser.publicKey, senderKey]),
      32,
    ),
  );
  const contentKey = Buffer.from(hkdfSync('sha256', secret, salt, contentKeyInfo, 16));
  const nonce = Buffer.from(hkdfSync('sha256', secret, salt, nonceInfo, 12));
  const body = Buffer.allocUnsafe(text.length + addedBytes);
  salt.copy(body, 0);
  body.writeUInt32BE(recordSize, saltBytes);
  body[saltBytes + 4] = keyBytes;
  senderKey.copy(body, saltBytes + 5);
  const cipher = createCipheriv('aes-128-gcm', contentKey, nonce);
  cipher.update(text).copy(body, headerBytes);
  cipher.update(Buffer.of(lastRecord)).copy(body, headerBytes + text.length);
  cipher.final();
  cipher.getAuthTag().copy(body, body.length - tagBytes);
  return body;
}
