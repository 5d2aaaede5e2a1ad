import type { PushRule } from './rule.ts';

/**
 * Object id of the user that an installation points to; NULL for an installation without a user.
 */
const userOf = (table: string): string => `(${table}.fields -> 'user' ->> 'objectId')`;

/**
 * Sends to one device of each user: of the targets with the same `user`, only the one that was
 * saved last gets the push (protocol/push.md#last-active-device-only). Devices without a user all
 * get it.
 */
export const lastActiveDevice: PushRule = {
  of: () => undefined,

  /** The columns of `targets` without a table mean those of `later`, the innermost table. */
  narrow({ lastActiveDeviceOnly }, targets) {
    if (!lastActiveDeviceOnly) return undefined;
    const condition = `NOT EXISTS (
      SELECT FROM installation AS later
       WHERE ${targets()} AND ${userOf('later')} IS NOT NULL AND ${userOf('later')} = ${userOf('installation')}
         AND (later.updated_at, later.id) > (installation.updated_at, installation.id))`;
    return { text: 'lastActiveDeviceOnly', condition };
  },
};
