import { isAddressMember, originOf } from '../addresses.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../json.ts';

/** Members whose values allow sending to a device. */
const tokenMembers = [
  'deviceToken',
  'registrationId',
  'installationId',
  'subscription',
  'deviceIds',
  'device_ids',
];

/** Members of users that may appear in a subquery of a condition on devices. */
const userMembers = ['username', 'email', 'mobilePhoneNumber', 'authData'];

const hiddenMembers = new Set([...tokenMembers, ...userMembers]);

/**
 * String literals and long numbers of a CQL statement. The last literal may have no end, because a
 * template may contain any statement.
 */
const cqlText = /(['"])(?:\\.|(?!\1).)*(?:\1|$)|\d{7,}/gs;

/** True if the values of a member or path are device tokens or identify a person. */
export const isHiddenMember = (path: string): boolean =>
  hiddenMembers.has(path.split('.', 1)[0] ?? '');

const visibleLength = 6;

/** True if a value can be a token or identify a person. A phone number may be sent as a number. */
export const isIdentifying = (value: Json): value is string | number | bigint =>
  ['string', 'number', 'bigint'].includes(typeof value);

/** True if the values of a member are tokens or ids that address a device. */
export const isTokenMember = (name: string): boolean => tokenMembers.includes(name);

/**
 * True if a text was shortened by `shortened`, for example in a condition that a caller has read
 * and sends again.
 */
export const isShortened = (text: string): boolean => text.endsWith('…');

/**
 * Returns the beginning of an identifier, which is enough to compare two identifiers. Half of a
 * surrogate pair is replaced, because PostgreSQL would refuse the audit entry.
 */
export const shortened = (text: string): string =>
  `${text.slice(0, Math.min(visibleLength, text.length >> 1)).toWellFormed()}…`;

/**
 * Shortens device tokens and values that identify a user, at any depth of a document or condition.
 */
export function shortenTokens(document: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, shortenNamed(name, value, false)]),
  );
}

function shortenNamed(name: string, value: Json, isHidden: boolean): Json {
  // All literals are hidden, because a literal does not show which member it is compared with.
  if (name === 'cql' && typeof value === 'string') return value.replace(cqlText, "'…'");
  if (name === 'where' && typeof value === 'string') return shortenText(value);
  return shortenMember(value, isHidden || isHiddenMember(name));
}

/** Shortens the values in a condition given as JSON text. Hides other texts completely. */
function shortenText(text: string): string {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? JSON.stringify(shortenTokens(value)) : '…';
  } catch {
    return '…';
  }
}

function shortenMember(value: Json, isHidden: boolean): Json {
  if (isIdentifying(value)) return isHidden ? shortened(String(value)) : value;
  if (Array.isArray(value)) return value.map((item) => shortenMember(item, isHidden));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, shortenNamed(name, member, isHidden)]),
  );
}

/**
 * Members of a user that viewers see. Custom members may contain anything, so viewers do not see
 * them.
 */
const visibleMembers = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'emailVerified',
  'mobilePhoneVerified',
  'ACL',
]);
const personalMembers = new Set(['username', 'email', 'mobilePhoneNumber']);

/**
 * Returns a user's document for viewers: names, addresses and numbers are shortened, and custom
 * members are left out.
 */
export const shortenPersonal = (document: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(document).flatMap(([name, value]) => {
      if (visibleMembers.has(name)) return [[name, value]];
      return personalMembers.has(name) && typeof value === 'string'
        ? [[name, shortened(value)]]
        : [];
    }),
  );

/** Text that replaces a secret. */
export const maskText = '•••';

/**
 * Replaces all strings, numbers and booleans of an object by dots, at any depth. Names of members
 * stay. For URLs that the service connects to, the origin stays, so that the audit shows where
 * requests go.
 */
export function masked(value: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      (isAddressMember(name) && typeof member === 'string' && originOf(member)) ||
        maskedValue(member),
    ]),
  );
}

/**
 * Members of credentials that are not secret: ids, which people compare with the vendor's console,
 * and settings.
 */
const visibleCredentials = new Set([
  ...['auth', 'teamId', 'keyId', 'topic', 'topics', 'environment', 'packageName', 'region'],
  ...['transport', 'ratePerSecond', 'subject', 'publicKey'],
]);

/** Replaces all secrets in credentials by dots. */
export const maskedCredentials = (credentials: JsonObject): JsonObject => ({
  ...masked(credentials),
  ...Object.fromEntries(
    Object.entries(credentials).filter(([name]) => visibleCredentials.has(name)),
  ),
});

function maskedValue(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(maskedValue);
  return isJsonObject(value) ? masked(value) : maskText;
}
