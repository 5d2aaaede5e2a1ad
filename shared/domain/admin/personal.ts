import type { JsonObject } from '../json.ts';
import { shortened } from './shortened.ts';

/** Members of a user that viewers see; members of the app's own may hold anything. */
const shownMembers = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'emailVerified',
  'mobilePhoneVerified',
  'ACL',
]);
const personalMembers = new Set(['username', 'email', 'mobilePhoneNumber']);

/** Returns a user's document for viewers: names, addresses and numbers shortened, members of the app's own left out. */
export const shortenPersonal = (document: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(document).flatMap(([name, value]) => {
      if (shownMembers.has(name)) return [[name, value]];
      return personalMembers.has(name) && typeof value === 'string' ? [[name, shortened(value)]] : [];
    }),
  );
