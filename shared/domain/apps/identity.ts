import { z } from 'zod';

/** An id that can be an app's: what a request may name. */
export const isAppId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/**
 * Shape of an id that an app brings with it. Those of the public service have 24 or more letters and digits, of newer
 * apps with an end that names the region (`-gzGzoHsz`, `-9Nh9j0Va`, `-MdYXbMMI`). SDKs make host names of the first 8
 * characters (protocol/clients.md#app-ids).
 */
export const broughtAppId = z
  .string('must be a string')
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{7,63}$/,
    'must be 8 to 64 letters, digits, - and _, and begin with a letter or digit',
  );

/** Shape of a key that an app brings with it: those of the public service are 24 to 48 letters and digits. */
const broughtKey = z
  .string('must be a string')
  .regex(/^[A-Za-z0-9_-]{16,64}$/, 'must be 16 to 64 letters, digits, - and _');

/** Keys that an app brings with it; those that are missing are made. */
export const broughtKeys = z.strictObject({
  appKey: broughtKey.optional(),
  masterKey: broughtKey.optional(),
  hookKey: broughtKey.optional(),
});

/** Keys of an app: who holds one of them must not hold another. */
export interface AppKeys {
  appKey: string;
  masterKey: string;
  hookKey: string;
}

/** Says whether each key has a value of its own; keys that are missing count as such. */
export function areDistinct(keys: { [K in keyof AppKeys]?: string | undefined }): boolean {
  const given = [keys.appKey, keys.masterKey, keys.hookKey].filter((key) => key !== undefined);
  return new Set(given).size === given.length;
}
