import type { PushRule } from './rule.ts';

/**
 * Returns the SQL for the object id of the user that an installation points to. NULL if the
 * installation has no user.
 */
const userOf = (table: string): string => `(${table}.fields -> 'user' ->> 'objectId')`;

/**
 * Sends to one device of each user. If several targets have the same `user`, only the target that
 * was saved last gets the push (protocol/push.md#last-active-device-only). All devices without a
 * user get it.
 */
export const lastActiveDevice: PushRule = {
  of: () => undefined,

  /**
   * In the inner query, columns of `targets` without a table name refer to `later`, which is the
   * innermost table.
   */
  narrow({ lastActiveDeviceOnly }, targets) {
    if (!lastActiveDeviceOnly) return undefined;
    const condition = `NOT EXISTS (
      SELECT FROM installation AS later
       WHERE ${targets()} AND ${userOf('later')} IS NOT NULL AND ${userOf('later')} = ${userOf('installation')}
         AND (later.updated_at, later.id) > (installation.updated_at, installation.id))`;
    return { text: 'lastActiveDeviceOnly', condition };
  },
};
