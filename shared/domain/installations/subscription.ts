import { createHash, ECDH } from 'node:crypto';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { parseEndpoint } from './push-services.ts';

/**
 * Web Push subscription of a browser (RFC 8030, RFC 8291). The endpoint is stored as the
 * `registrationId` of the installation, the other members together as its subscription keys.
 */
export interface Subscription {
  endpoint: string;
  /** Public key of the browser, 65 bytes in base64url. */
  p256dh: string;
  /** Authentication secret of the browser, 16 bytes in base64url. */
  auth: string;
  /**
   * Id of the VAPID key that the subscription was made with (`keyIdOf`). Empty if unknown. A push
   * service takes messages for the subscription only with this key (RFC 8292, 4.2).
   */
  keyId: string;
}

/** Length of the id of a VAPID key: 96 bits of its digest in base64url. */
const keyIdChars = 16;
const keyIdForm = /^[A-Za-z0-9_-]{16}$/;

/** Returns the id of a VAPID key. `publicKey` is its 65 bytes in base64url. */
export const keyIdOf = (publicKey: string): string =>
  createHash('sha256')
    .update(Buffer.from(publicKey, 'base64url'))
    .digest('base64url')
    .slice(0, keyIdChars);

const members = new Set(['endpoint', 'keys', 'expirationTime', 'keyId', 'contentEncoding']);

/**
 * Parses the member `subscription` of an installation: the JSON of a browser's `PushSubscription`,
 * and in addition `keyId`. Throws error 111 with the invalid member. No error quotes a value.
 */
export function parseSubscription(value: Json, name: string): Subscription {
  const sent = typeof value === 'string' ? objectIn(value) : value;
  if (!isJsonObject(sent)) throw wrong(name, 'must be the JSON object of a PushSubscription');
  const unknown = Object.keys(sent).find((member) => !members.has(member));
  if (unknown !== undefined)
    throw wrong(name, `has the unknown member ${unknown.replace(/[^\w-]/g, '').slice(0, 40)}`);
  const { endpoint, keys, keyId = '' } = sent;
  if (typeof endpoint !== 'string') throw wrong(`${name}.endpoint`, 'must be an https:// URL');
  const parsed = parseEndpoint(endpoint);
  if ('error' in parsed) throw wrong(`${name}.endpoint`, parsed.error);
  if (!isJsonObject(keys)) throw wrong(`${name}.keys`, 'must be an object with p256dh and auth');
  const p256dh = bytesIn(keys.p256dh, 65);
  if (!p256dh || !isPoint(p256dh))
    throw wrong(`${name}.keys.p256dh`, 'must be a public key of P-256: 65 bytes in base64url');
  const auth = bytesIn(keys.auth, 16);
  if (!auth) throw wrong(`${name}.keys.auth`, 'must be 16 bytes in base64url');
  if (typeof keyId !== 'string' || (keyId !== '' && !keyIdForm.test(keyId)))
    throw wrong(`${name}.keyId`, 'must be the keyId that GET /1.1/webpush/key returned');
  return {
    endpoint: parsed.url.href,
    p256dh: p256dh.toString('base64url'),
    auth: auth.toString('base64url'),
    keyId,
  };
}

const wrong = (name: string, rule: string): Error => refuse('incorrectType', `${name} ${rule}.`);

function objectIn(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Decodes base64url, with or without padding. Returns undefined for another length or alphabet. */
function bytesIn(value: Json | undefined, length: number): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_\-+/]{1,120}={0,2}$/.test(value)) return undefined;
  const bytes = Buffer.from(value, 'base64url');
  return bytes.length === length ? bytes : undefined;
}

/** True if the bytes are an uncompressed point on P-256 (RFC 8291, section 7). */
function isPoint(bytes: Buffer): boolean {
  if (bytes[0] !== 4) return false;
  try {
    ECDH.convertKey(bytes, 'prime256v1');
    return true;
  } catch {
    return false;
  }
}

/** Returns the text that the column of the subscription keys stores. */
export const storedKeys = ({ p256dh, auth, keyId }: Subscription): string =>
  `${p256dh}.${auth}.${keyId}`;

/** Returns the stored subscription of an installation; null if it has none. */
export function storedSubscription(
  endpoint: string | null,
  keys: string | null,
): Subscription | null {
  if (endpoint === null || keys === null) return null;
  const [p256dh = '', auth = '', keyId = ''] = keys.split('.');
  return { endpoint, p256dh, auth, keyId };
}

/** Returns a subscription in the form of a reply. */
export const subscriptionDocument = ({
  endpoint,
  p256dh,
  auth,
  keyId,
}: Subscription): JsonObject => ({
  endpoint,
  keys: { p256dh, auth },
  ...(keyId === '' ? {} : { keyId }),
});

/** Separates the endpoint from the keys in a device token. Endpoints contain no `#`. */
const tokenKeysSeparator = '#';

/**
 * Parses the device token of a Web Push device: the endpoint, `#`, and the stored keys. Returns
 * null if a part is missing.
 */
export function subscriptionIn(deviceToken: string): Subscription | null {
  const at = deviceToken.indexOf(tokenKeysSeparator);
  const found =
    at < 1 ? null : storedSubscription(deviceToken.slice(0, at), deviceToken.slice(at + 1));
  return found && found.p256dh !== '' && found.auth !== '' ? found : null;
}
