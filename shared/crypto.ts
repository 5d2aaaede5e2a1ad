import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hash,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import { parseExactly } from './domain/json.ts';

/**
 * Layout of an encrypted value: version, key fingerprint (4 bytes), nonce (12), tag (16),
 * ciphertext.
 */
const version = 1;
const fingerprintBytes = 4;
const nonceBytes = 12;
const tagBytes = 16;
const headerBytes = 1 + fingerprintBytes + nonceBytes + tagBytes;

function fingerprint(key: Buffer): Buffer {
  return createHash('sha256').update(key).digest().subarray(0, fingerprintBytes);
}

/** A value cannot be decrypted: its key is not in CARILLON_SECRET, or the value is damaged. */
export class SealError extends Error {
  override name = 'SealError';
}

/** Returns the decrypted value; undefined if no key decrypts it. */
export function openOrUndefined<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

/**
 * Encrypts stored values with AES-256-GCM (develop/architecture.md#secrets,
 * protocol/operation.md#environment). The first key encrypts, and all keys decrypt. The ciphertext
 * is bound to `context`, so a value that is copied to another row cannot be decrypted there.
 */
export class Vault {
  readonly #keys: { key: Buffer; id: Buffer }[];

  constructor(keys: Buffer[]) {
    if (keys.length === 0) throw new Error('a vault needs at least one key');
    this.#keys = keys.map((key) => ({ key, id: fingerprint(key) }));
  }

  /** Prefixes (version and fingerprint, in hex) of the encrypted values that these keys decrypt. */
  get prefixes(): string[] {
    return this.#keys.map(({ id }) => Buffer.concat([Buffer.of(version), id]).toString('hex'));
  }

  /**
   * Ids of the keys, first key first. An id has 8 hexadecimal digits, and each encrypted value
   * contains the id of its key.
   */
  get keyIds(): [string, ...string[]] {
    const [first = '', ...others] = this.#keys.map(({ id }) => id.toString('hex'));
    return [first, ...others];
  }

  seal(value: unknown, context: string): Buffer {
    const first = this.#keys[0];
    if (!first) throw new Error('a vault needs at least one key');
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', first.key, nonce).setAAD(Buffer.from(context));
    const body = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
    return Buffer.concat([Buffer.of(version), first.id, nonce, cipher.getAuthTag(), body]);
  }

  /**
   * Derives a secret from `context`, so that it need not be stored: HMAC-SHA256 with the first key,
   * in base64url (43 characters). It changes with the first key. `derivedBy` returns the secrets of
   * all keys.
   */
  derive(context: string): string {
    return this.derivedBy(context)[0] ?? '';
  }

  /** Derives the secret with each key, to check a secret that was issued with an older key. */
  derivedBy(context: string): string[] {
    return this.#keys.map(({ key }) =>
      createHmac('sha256', key).update(`derive ${context}`).digest('base64url'),
    );
  }

  /** Decrypts a value. The caller checks its type. Throws `SealError` if it cannot be decrypted. */
  open(sealed: Buffer, context: string): unknown {
    if (sealed.length < headerBytes || sealed[0] !== version)
      throw new SealError('not a sealed value');
    const id = sealed.subarray(1, 1 + fingerprintBytes);
    const entry = this.#keys.find((candidate) => candidate.id.equals(id));
    if (!entry) throw new SealError('sealed with a key that is not among CARILLON_SECRET');
    const nonceStart = 1 + fingerprintBytes;
    const tagStart = nonceStart + nonceBytes;
    const decipher = createDecipheriv(
      'aes-256-gcm',
      entry.key,
      sealed.subarray(nonceStart, tagStart),
    )
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(tagStart, headerBytes));
    try {
      const text =
        decipher.update(sealed.subarray(headerBytes), undefined, 'utf8') + decipher.final('utf8');
      return parseExactly(text);
    } catch (cause) {
      throw new SealError('damaged, or moved from where it was sealed', { cause });
    }
  }
}

/** Compares two texts in constant time, independent of their content and length. */
export function equalInConstantTime(a: string, b: string): boolean {
  return timingSafeEqual(sha256(a), sha256(b));
}

/**
 * True if an `Authorization` header is `Bearer <token>`. Takes the same time for all wrong tokens.
 */
export function isBearer(header: string | undefined, token: string): boolean {
  const sent = /^Bearer (.+)$/i.exec(header ?? '')?.[1];
  return sent !== undefined && equalInConstantTime(sent, token);
}

/** Returns the SHA-256 of a text. The database stores this digest instead of a random secret. */
export const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer');
