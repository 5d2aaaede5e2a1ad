/** VAPID (RFC 8292): key pairs, and the signed tokens that identify the sender to a push service. */
import { createECDH, createPrivateKey, type KeyObject, sign } from 'node:crypto';

/** Key pair in base64url: 65 bytes and 32 bytes. */
export interface KeyPair {
  publicKey: string;
  privateKey: string;
}

/** Makes a key pair. */
export function newKeyPair(): KeyPair {
  const pair = createECDH('prime256v1');
  const publicKey = pair.generateKeys('base64url');
  // Removes no leading zero: the private key has always 32 bytes.
  const privateKey = Buffer.alloc(32);
  const bytes = pair.getPrivateKey();
  bytes.copy(privateKey, 32 - bytes.length);
  return { publicKey, privateKey: privateKey.toString('base64url') };
}

/** True if the two keys are one pair of P-256. */
export function isKeyPair({ publicKey, privateKey }: KeyPair): boolean {
  try {
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(Buffer.from(privateKey, 'base64url'));
    return pair.getPublicKey('base64url') === publicKey;
  } catch {
    return false;
  }
}

/** Time for which a token is valid. Push services refuse more than 24 hours. */
const lifetimeS = 12 * 3600;
/** A token is replaced when less than this time is left. Apple accepts one change per hour. */
const renewalS = 6 * 3600;
/** Maximum origins with a cached token. UnifiedPush servers are hosts of their own. */
const maxOrigins = 1000;

/** Signs tokens with one key, one for each origin of endpoints. */
export class VapidSigner {
  readonly #key: KeyObject;
  readonly #publicKey: string;
  readonly #subject: string;
  readonly #tokens = new Map<string, { value: string; renewAtS: number }>();

  /** `subject` is a `mailto:` or `https:` address of the sender. */
  constructor({ publicKey, privateKey }: KeyPair, subject: string) {
    const point = Buffer.from(publicKey, 'base64url');
    this.#key = createPrivateKey({
      format: 'jwk',
      key: {
        kty: 'EC',
        crv: 'P-256',
        x: point.subarray(1, 33).toString('base64url'),
        y: point.subarray(33).toString('base64url'),
        d: privateKey,
      },
    });
    this.#publicKey = publicKey;
    this.#subject = subject;
  }

  /** Returns the value of the `Authorization` header for an origin. */
  authorization(origin: string, nowMs: number): string {
    const nowS = Math.floor(nowMs / 1000);
    const cached = this.#tokens.get(origin);
    if (cached && nowS < cached.renewAtS) return cached.value;
    const exp = nowS + lifetimeS;
    const value = `vapid t=${this.#token({ aud: origin, exp, sub: this.#subject })}, k=${this.#publicKey}`;
    if (this.#tokens.size >= maxOrigins) this.#tokens.clear();
    this.#tokens.set(origin, { value, renewAtS: exp - renewalS });
    return value;
  }

  #token(claims: { aud: string; exp: number; sub: string }): string {
    const head = encoded({ typ: 'JWT', alg: 'ES256' });
    const signed = `${head}.${encoded(claims)}`;
    const signature = sign('sha256', Buffer.from(signed), {
      key: this.#key,
      dsaEncoding: 'ieee-p1363',
    });
    return `${signed}.${signature.toString('base64url')}`;
  }
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
