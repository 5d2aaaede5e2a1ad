import { isJsonObject, type Json, type JsonObject, parseJson } from '../json.ts';
import { isAddressMember, originOf } from './service-addresses.ts';

/** Members whose texts let their holder send to a device. */
const tokenMembers = ['deviceToken', 'registrationId', 'installationId', 'deviceIds', 'device_ids'];

/** Members of users that a condition on devices can name in a query of their class. */
const userMembers = ['username', 'email', 'mobilePhoneNumber', 'authData'];

const hiddenMembers = new Set([...tokenMembers, ...userMembers]);

/**
 * Texts of a CQL statement; the last one may have no end, since a template may hold any statement.
 */
const cqlText = /(['"])(?:\\.|(?!\1).)*(?:\1|$)/gs;

/**
 * Tells whether the values of a member or of a path in it are tokens of devices, or name a person.
 */
export const isHiddenMember = (path: string): boolean =>
  hiddenMembers.has(path.split('.', 1)[0] ?? '');

const shownLength = 6;

/** Tells whether the values of a member are tokens or ids by which a device is reached. */
export const isTokenMember = (name: string): boolean => tokenMembers.includes(name);

/**
 * Tells whether a text is one that was shortened, such as a condition that a caller read and sends
 * again.
 */
export const isShortened = (text: string): boolean => text.endsWith('…');

/** Returns the beginning of an identifier, enough to compare two. */
export const shortened = (text: string): string =>
  `${text.slice(0, Math.min(shownLength, text.length >> 1))}…`;

/**
 * Shortens the tokens of devices and what names a user in a document or a condition, at any depth.
 */
export function shortenTokens(document: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, shortenNamed(name, value, false)]),
  );
}

function shortenNamed(name: string, value: Json, isHidden: boolean): Json {
  // A statement does not say before each text which member it is for.
  if (name === 'cql' && typeof value === 'string') return value.replace(cqlText, "'…'");
  if (name === 'where' && typeof value === 'string') return shortenText(value);
  return shortenMember(value, isHidden || isHiddenMember(name));
}

/** Shortens a condition that is JSON text; returns no part of another text. */
function shortenText(text: string): string {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? JSON.stringify(shortenTokens(value)) : '…';
  } catch {
    return '…';
  }
}

function shortenMember(value: Json, isHidden: boolean): Json {
  if (typeof value === 'string') return isHidden ? shortened(value) : value;
  if (Array.isArray(value)) return value.map((item) => shortenMember(item, isHidden));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, shortenNamed(name, member, isHidden)]),
  );
}

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

/**
 * Returns a user's document for viewers: names, addresses and numbers shortened, members of the
 * app's own left out.
 */
export const shortenPersonal = (document: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(document).flatMap(([name, value]) => {
      if (shownMembers.has(name)) return [[name, value]];
      return personalMembers.has(name) && typeof value === 'string'
        ? [[name, shortened(value)]]
        : [];
    }),
  );

/** Text in place of a secret. */
export const maskText = '•••';

/**
 * Replaces every text, number and flag of an object by dots, at any depth: the names of members
 * stay. Of a URL that the service connects to, the origin stays, so that the audit shows where
 * requests of the service go.
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
 * Members of credentials that are no secrets: ids that people compare with the vendor's page, and
 * settings.
 */
const shownCredentials = new Set([
  ...['auth', 'teamId', 'keyId', 'topic', 'topics', 'environment', 'packageName', 'region'],
  ...['transport', 'ratePerSecond'],
]);

/** Returns credentials with dots in place of all secrets. */
export const maskedCredentials = (credentials: JsonObject): JsonObject => ({
  ...masked(credentials),
  ...Object.fromEntries(Object.entries(credentials).filter(([name]) => shownCredentials.has(name))),
});

function maskedValue(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(maskedValue);
  return isJsonObject(value) ? masked(value) : maskText;
}
