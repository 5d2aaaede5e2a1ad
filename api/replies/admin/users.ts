import { z } from 'zod';
import { component, count, timestamp } from '../common.ts';
import { userPart } from '../objects.ts';

export const userDetail = component(
  'UserDetail',
  z.strictObject({
    user: userPart,
    identities: z
      .array(z.strictObject({ platform: z.string(), uid: z.string() }))
      .describe('Accounts on other platforms, UnionIDs included.'),
    hasPassword: z.boolean(),
    lock: z.strictObject({
      failures: count.describe('Failed logins of 15 minutes.'),
      lockedUntil: timestamp.nullable().describe('Logins are refused until then.'),
    }),
  }),
);
