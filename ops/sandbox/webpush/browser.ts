/**
 * Simulated browsers. Their subscriptions are computed from a hash, so the gateway can decrypt a
 * message without a list of subscriptions.
 */
import { createDecipheriv, createECDH, createHash, hkdfSync } from 'node:crypto';

/** Push services that the sandbox simulates, with the form of their endpoints. */
const endpointForms = {
  google: 'https://fcm.googleapis.com/wp/',
  mozilla: 'https://updates.push.services.mozilla.com/wpush/v2/',
  apple: 'https://web.push.apple.com/Q',
  microsoft: 'https://wns2-par02p.notify.windows.com/w/?token=',
} as const;

export type SimulatedService = keyof typeof endpointForms;
const services = Object.keys(endpointForms) as SimulatedService[];

/** Returns the service of a simulated browser: each has a quarter of them. */
const serviceOfHash = (hash: string): SimulatedService =>
  services[Number.parseInt(hash.slice(0, 1), 16) % services.length] ?? 'google';

/** Subscription of a browser with its secrets. */
export interface Browser {
  service: SimulatedService;
  endpoint: string;
  publicKey: Buffer;
  privateKey: Buffer;
  auth: Buffer;
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Returns the browser of a hash of 64 hexadecimal digits. */
export function browserOf(hash: string, service = serviceOfHash(hash)): Browser {
  const pair = createECDH('prime256v1');
  // A digest is a valid private key, except with a probability of 2^-32.
  const privateKey = digest(`browser ${hash}`);
  pair.setPrivateKey(privateKey);
  return {
    service,
    endpoint: `${endpointForms[service]}${hash}`,
    publicKey: pair.getPublicKey(),
    privateKey,
    auth: digest(`auth ${hash}`).subarray(0, 16),
  };
}

/** Returns the subscription as a browser gives it to a page. */
export const subscriptionOf = ({ endpoint, publicKey, auth }: Browser) => ({
  endpoint,
  expirationTime: null,
  keys: { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') },
});

/** Returns the token of a browser as a connector gets it. */
export function tokenOf(browser: Browser): string {
  const { endpoint, keys } = subscriptionOf(browser);
  return `${endpoint}#${keys.p256dh}.${keys.auth}.`;
}

/** Returns the hash in the path and query of an endpoint; undefined for another path. */
export const hashIn = (target: string): string | undefined =>
  /(?:\/wp\/|\/wpush\/v2\/|\/Q|\/w\/\?token=)([0-9a-f]{64})$/.exec(target)?.[1];

/** Text of a message and the public key of its sender, or what is wrong with the body. */
export type Opened = { ok: true; text: Buffer; senderKey: Buffer } | { ok: false; error: string };

/** Decrypts a body as a browser does (RFC 8188, RFC 8291). */
export function decrypt(
  body: Buffer,
  browser: Pick<Browser, 'publicKey' | 'privateKey' | 'auth'>,
): Opened {
  if (body.length < 86 + 17) return { ok: false, error: 'the body is too short' };
  const salt = body.subarray(0, 16);
  const recordSize = body.readUInt32BE(16);
  if (body[20] !== 65) return { ok: false, error: 'the key id is not a public key' };
  const senderKey = body.subarray(21, 86);
  const record = body.subarray(86);
  if (recordSize < 18 || record.length > recordSize)
    return { ok: false, error: 'the body has several records' };
  const pair = createECDH('prime256v1');
  pair.setPrivateKey(browser.privateKey);
  try {
    const shared = pair.computeSecret(senderKey);
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), browser.publicKey, senderKey]);
    const secret = Buffer.from(hkdfSync('sha256', shared, browser.auth, info, 32));
    const derived = (name: string, length: number) =>
      Buffer.from(hkdfSync('sha256', secret, salt, `Content-Encoding: ${name}\0`, length));
    const decipher = createDecipheriv(
      'aes-128-gcm',
      derived('aes128gcm', 16),
      derived('nonce', 12),
    );
    decipher.setAuthTag(record.subarray(-16));
    const padded = Buffer.concat([decipher.update(record.subarray(0, -16)), decipher.final()]);
    const end = padded.findLastIndex((byte) => byte !== 0);
    if (padded[end] !== 2)
      return { ok: false, error: 'the record has no delimiter of a last record' };
    return { ok: true, text: padded.subarray(0, end), senderKey };
  } catch {
    return { ok: false, error: 'the body cannot be decrypted' };
  }
}
