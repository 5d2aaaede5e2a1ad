import { randomBytes, randomInt } from 'node:crypto';

const alphanumeric = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

function randomFrom(alphabet: string, length: number): string {
  let text = '';
  for (let i = 0; i < length; i += 1) text += alphabet[randomInt(alphabet.length)];
  return text;
}

/** Returns a public id of an installation or user: 24 hex characters (protocol/users.md#user-fields). */
export const newObjectId = (): string => randomBytes(12).toString('hex');

/** Returns a public id of a push and default `notification_id`: 16 alphanumerics (protocol/push.md#push-call). */
export const newPushObjectId = (): string => randomFrom(alphanumeric, 16);

/**
 * Returns an application id of 24 characters. It never ends in a region suffix such as `-MdYXbMMI`, which would send
 * SDKs to another host than the one configured (protocol/clients.md#app-ids).
 */
export const newAppId = (): string => randomFrom(alphanumeric, 24);

/** Returns a name for a user without one: 25 lower-case alphanumerics (protocol/users.md#user-fields). */
export const newUsername = (): string => randomFrom(alphanumeric.slice(26), 25);

/** Returns an application, master or hook key of 24 characters. */
export const newKey = (): string => randomFrom(alphanumeric, 24);
