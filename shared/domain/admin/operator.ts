import { z } from 'zod';
import { dayMs, hourMs } from '../../clock.ts';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../json.ts';
import { isPathPart } from '../path.ts';
import { detail } from '../texts/texts.ts';
import { isAddressMember, originOf } from './service-addresses.ts';

/** A session ends after this time without a call, and after this time in any case (protocol/admin-api.md#sessions). */
export const sessionIdleMs = 12 * hourMs;
export const sessionLifeMs = 7 * dayMs;

/**
 * Roles of people and machines that use the admin API, each with the permissions of those before it
 * (protocol/admin-api.md#roles).
 */
export const operatorRoles = ['viewer', 'sender', 'operator', 'owner'] as const;
export type OperatorRole = (typeof operatorRoles)[number];

/** Caller of the admin API. */
export interface Operator {
  /** Name for people: that of the token. */
  name: string;
  role: OperatorRole;
  /** Apps that the caller may see and change; null for all. */
  apps: readonly string[] | null;
  /** Token of the caller; null for CARILLON_ADMIN_TOKEN. */
  tokenId: number | null;
  /** Session of the caller; null for a token in the header. */
  session: { id: number; expiresAt: Date } | null;
}

/** Tells whether a role has the permissions of another. */
export const hasRole = (role: OperatorRole, needed: OperatorRole): boolean =>
  operatorRoles.indexOf(role) >= operatorRoles.indexOf(needed);

/** Tells whether an operator may see and change an app. */
export const mayUseApp = ({ apps }: Pick<Operator, 'apps'>, appId: string): boolean =>
  apps === null || apps.includes(appId);

const maxLength = 100;

/**
 * Characters that nobody sees: control and format characters (such as zero-width blanks and marks
 * that change the direction), separators of lines, and half characters.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * Returns a name that people read, without blanks around it. Throws 1 for one that is empty, long,
 * or has unseen characters.
 */
export function displayNameOf(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > maxLength || unseen.test(trimmed))
    throw refuse('invalidParameter', detail('itemName', { n: maxLength }));
  return trimmed;
}

/**
 * Returns the name of a stored item that is a part of its path, such as an audience or an SMS
 * template, without blanks around it. Throws 1 for a name that a path cannot hold or that people
 * cannot read.
 */
export function itemNameOf(name: string): string {
  const shown = displayNameOf(name);
  if (!isPathPart(shown)) throw refuse('invalidParameter', detail('itemPath'));
  return shown;
}

/**
 * Returns a text that is the same for names which people take for one: of another case, with other
 * blanks, with full-width or with unseen characters.
 */
const nameKey = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll(/[\s\p{Cc}\p{Cf}]/gu, '')
    .toUpperCase()
    .toLowerCase();

/**
 * Tells whether people would take a name for one of this service: `admin` is the holder of
 * CARILLON_ADMIN_TOKEN, and names of commands and decisions in the audit begin with `carillon`.
 */
function isReservedName(name: string): boolean {
  const key = nameKey(name);
  return key === 'admin' || key.startsWith('carillon');
}

/** Name of a person or a machine, composed (NFC), without blanks around it. */
export const callerName = z
  .string('expected a text')
  .trim()
  .normalize('NFC')
  .min(1, 'must not be empty')
  .max(maxLength, `must be at most ${maxLength} characters`)
  .refine((text) => !unseen.test(text), 'must not hold control or format characters')
  .refine((text) => !isReservedName(text), 'is a name of this service: choose another one');

/** Tells whether people take two names for one. */
export const isSameName = (one: string, other: string): boolean => nameKey(one) === nameKey(other);

/** Members whose texts let their holder send to a device. */
const tokenMembers = ['deviceToken', 'registrationId', 'installationId', 'deviceIds', 'device_ids'];

/** Members of users that a condition on devices can name in a query of their class. */
const userMembers = ['username', 'email', 'mobilePhoneNumber', 'authData'];

const hiddenMembers = new Set([...tokenMembers, ...userMembers]);

/** Texts of a CQL statement; the last one may have no end, since a template may hold any statement. */
const cqlText = /(['"])(?:\\.|(?!\1).)*(?:\1|$)/gs;

/** Tells whether the values of a member or of a path in it are tokens of devices, or name a person. */
export const isHiddenMember = (path: string): boolean => hiddenMembers.has(path.split('.', 1)[0] ?? '');

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

/** Shortens the tokens of devices and what names a user in a document or a condition, at any depth. */
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

/** Returns a user's document for viewers: names, addresses and numbers shortened, members of the app's own left out. */
export const shortenPersonal = (document: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(document).flatMap(([name, value]) => {
      if (shownMembers.has(name)) return [[name, value]];
      return personalMembers.has(name) && typeof value === 'string' ? [[name, shortened(value)]] : [];
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
      (isAddressMember(name) && typeof member === 'string' && originOf(member)) || maskedValue(member),
    ]),
  );
}

/** Members of credentials that are no secrets: ids that people compare with the vendor's page, and settings. */
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
