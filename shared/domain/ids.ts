import { randomFillSync, randomInt } from 'node:crypto';

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

function randomFrom(alphabet: string, length: number): string {
  let text = '';
  for (let i = 0; i < length; i += 1) text += alphabet[randomInt(alphabet.length)];
  return text;
}

const objectIdBytes = 12;
/**
 * Random bytes for the next ids. Requesting many bytes at once costs a tenth of single requests.
 */
const randomness = Buffer.alloc(objectIdBytes * 256);
let usedBytes = randomness.length;

/**
 * Returns a public id of an installation or user: 24 hex digits (protocol/users.md#user-fields).
 */
export function newObjectId(): string {
  if (usedBytes === randomness.length) {
    randomFillSync(randomness);
    usedBytes = 0;
  }
  usedBytes += objectIdBytes;
  return randomness.toString('hex', usedBytes - objectIdBytes, usedBytes);
}

/**
 * Returns a public id of a push, or a default `notification_id`: 16 letters and digits
 * (protocol/push.md#push-call).
 */
export const newPushObjectId = (): string => randomFrom(alphanumeric, 16);

/**
 * Returns an app id of 24 characters. It never ends with a region suffix such as `-MdYXbMMI`,
 * because SDKs would then use another host than the configured host (protocol/clients.md#app-ids).
 */
export const newAppId = (): string => randomFrom(alphanumeric, 24);

/**
 * Returns a name for a user without one: 25 lower-case letters and digits
 * (protocol/users.md#user-fields).
 */
export const newUsername = (): string => randomFrom(alphanumeric.slice(26), 25);

/** Returns an app key, master key or hook key of 24 characters. */
export const newKey = (): string => randomFrom(alphanumeric, 24);
