import { z } from 'zod';

/** Returns whether a text has the form of an app id. */
export const isAppId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/**
 * Schema of an app id from the public service: 24 or more letters and digits, for newer apps with a region suffix
 * (`-gzGzoHsz`, `-9Nh9j0Va`, `-MdYXbMMI`). SDKs build host names from the first 8 characters
 * (protocol/clients.md#app-ids).
 */
export const broughtAppId = z
  .string('must be a string')
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{7,63}$/,
    'must be 8 to 64 letters, digits, - and _, and begin with a letter or digit',
  );

/** Schema of a key from the public service: 24 to 48 letters and digits. */
const broughtKey = z
  .string('must be a string')
  .regex(/^[A-Za-z0-9_-]{16,64}$/, 'must be 16 to 64 letters, digits, - and _');

/** Schema of the keys of an app that moves in; missing keys are generated. */
export const broughtKeys = z.strictObject({
  appKey: broughtKey.optional(),
  masterKey: broughtKey.optional(),
  hookKey: broughtKey.optional(),
});

/** Keys of an app; no two may be equal. */
export interface AppKeys {
  appKey: string;
  masterKey: string;
  hookKey: string;
}

/** Names of the keys of an app. */
export const keyNames = ['appKey', 'masterKey', 'hookKey'] as const;
export type KeyName = (typeof keyNames)[number];

/** Key that was replaced, and is valid for some time beside its successor. */
export interface OldKey {
  value: string;
  /** Epoch milliseconds. */
  validUntilMs: number;
}

/** Returns the values of a key that are valid now: the current one first. */
export function validKeys(
  app: AppKeys & { oldKeys?: { [K in KeyName]?: OldKey | undefined } | undefined },
  name: KeyName,
  nowMs: number,
): string[] {
  const old = app.oldKeys?.[name];
  return old && old.validUntilMs > nowMs ? [app[name], old.value] : [app[name]];
}

/** Returns whether all keys that are present differ. */
export function areDistinct(keys: { [K in keyof AppKeys]?: string | undefined }): boolean {
  const given = [keys.appKey, keys.masterKey, keys.hookKey].filter((key) => key !== undefined);
  return new Set(given).size === given.length;
}
