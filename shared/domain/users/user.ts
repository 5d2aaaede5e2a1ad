import { domainToASCII } from 'node:url';
import { refuse } from '../errors/errors.ts';
import type { Json, JsonObject } from '../json.ts';
import { parsePhone } from '../messages/phone.ts';
import { type Acl, publicAcl } from '../objects/acl.ts';
import type { Members } from '../objects/operations.ts';
import { type AuthData, shownAuthData, unionMembers } from './auth-data.ts';

/** Returns the size of a user's client-writable members, as JSON in UTF-8. */
export const draftBytes = (draft: UserDraft): number =>
  Buffer.byteLength(
    JSON.stringify([draft.username, draft.email, draft.authData, draft.acl, draft.fields]),
  );

/** Client-writable members of a user. Null: absent. */
export interface UserDraft {
  username: string;
  email: string | null;
  /**
   * True: verified; false: pending; null: not requested (protocol/users.md#e-mail-verification).
   */
  emailVerified: boolean | null;
  /** E.164. */
  mobilePhoneNumber: string | null;
  mobilePhoneVerified: boolean;
  /** A stored user has its tokens encrypted (auth-tokens.ts). */
  authData: AuthData | null;
  acl: Acl | null;
  /** Every other member. */
  fields: JsonObject;
}

/**
 * User of an app, as its row stores it (protocol/users.md#user-fields,
 * develop/architecture.md#data).
 */
export interface User extends UserDraft {
  /** Internal id within the app; never revealed. */
  id: number;
  objectId: string;
  /** Argon2id in PHC form, or an imported hash; null: no password. Never revealed. */
  passwordHash: string | null;
  session: SessionSecret;
  createdAt: Date;
  updatedAt: Date;
}

/** Nonce that a session token is derived from, and the token's digest. Never revealed. */
export interface SessionSecret {
  nonce: Buffer;
  hash: Buffer;
}

/** Options of a user's document, by caller. */
export interface UserView {
  /** True for the user itself and the master key: only they get third-party accounts. */
  isOwn: boolean;
  /**
   * Decrypts the tokens of third-party accounts. Without it the document omits them: clients never
   * need them back.
   */
  open?: ((authData: AuthData) => AuthData) | undefined;
  /**
   * True: `returnACL=true` (protocol/queries.md#query-parameters), which shows the default ACL of a
   * user without one. `stored`: only an ACL that the user has.
   */
  hasAcl?: boolean | 'stored';
}

/** Returns a user as replies show it, without password and session token. */
export function userDocument(user: User, view: UserView): JsonObject {
  return {
    ...draftDocument(user, view),
    objectId: user.objectId,
    createdAt: user.createdAt.toISOString(),
    updatedAt: user.updatedAt.toISOString(),
  };
}

/** As `userDocument`, for a user that is not stored yet. */
export function draftDocument(
  user: UserDraft,
  { isOwn, open, hasAcl = false }: UserView,
): JsonObject {
  return Object.fromEntries([
    ...Object.entries(user.fields),
    ['username', user.username],
    ...(user.email === null ? [] : [['email', user.email] as const]),
    ['emailVerified', user.emailVerified],
    ...(user.mobilePhoneNumber === null
      ? []
      : [['mobilePhoneNumber', user.mobilePhoneNumber] as const]),
    ['mobilePhoneVerified', user.mobilePhoneVerified],
    ...(isOwn ? authMembers(user.authData, open) : []),
    ...aclMember(user.acl, hasAcl),
  ]);
}

function aclMember(acl: Acl | null, hasAcl: boolean | 'stored'): [string, Json][] {
  const shown = acl ?? (hasAcl === true ? publicAcl : null);
  return hasAcl && shown ? [['ACL', shown]] : [];
}

function authMembers(authData: AuthData | null, open = shownAuthData): [string, Json][] {
  if (authData === null) return [];
  const unions = unionMembers(authData);
  return [['authData', { ...open(authData), ...unions }], ...Object.entries(unions)];
}

/** Returns the members of a document with these names. */
export function pickUserMembers(document: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(document).filter(([name]) => names.has(name)));
}

/** Domains that ignore dots before the `@`, with the name that they share. */
const dotless = new Map([
  ['gmail.com', 'gmail.com'],
  ['googlemail.com', 'gmail.com'],
]);

/**
 * Returns one text for all spellings of an address that reach the same mailbox, to count mails to
 * it: capitals, compatible characters, a tag behind `+`, the two forms of a domain, and dots where
 * a provider ignores them. Accounts tell these addresses apart; the text is for limits only.
 */
export function mailboxOf(email: string): string {
  const folded = email.normalize('NFKC').trim().toLowerCase();
  const at = folded.lastIndexOf('@');
  const [name = ''] = folded.slice(0, at).replaceAll('"', '').split('+');
  const sent = folded.slice(at + 1).replace(/\.+$/, '');
  const domain = domainToASCII(sent) || sent;
  const shared = dotless.get(domain);
  return shared === undefined ? `${name}@${domain}` : `${name.replaceAll('.', '')}@${shared}`;
}

/**
 * Limit of a user. Every login reads the row, so the limit is far below the 16 MB of the public
 * service.
 */
export const maxUserBytes = 1024 * 1024;
/** Limit of custom members, as on the public service (protocol/objects.md#object-limits). */
const maxFields = 300;
/** A user name: not blank, without control characters, and short enough for an index. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused
export const usernameForm = /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]{1,255}$/;
const maxEmailLength = 254;
/** Limit of a password: the time of hashing grows with its length. */
export const maxPasswordBytes = 1024;

const emailForm =
  /^[^\s@\p{Cc}"<>(),:;[\]\\]{1,64}@[^\s@\p{Cc}"<>(),:;[\]\\]+\.[^\s@\p{Cc}"<>(),:;[\]\\]+$/u;

/**
 * Reads a user name; case and inner blanks are significant. Throws 200 for an empty one, 217 for an
 * invalid one.
 */
export function readUsername(value: unknown): string {
  if (value === '') throw refuse('usernameMissing');
  const isValid = typeof value === 'string' && usernameForm.test(value) && value.isWellFormed();
  if (!isValid) throw refuse('invalidUsername');
  return value;
}

/**
 * Reads a password. Throws 201 for an empty one, 218 for a blank, too long or other invalid one.
 */
export function readPassword(value: unknown): string {
  if (value === '') throw refuse('passwordMissing');
  const isValid =
    typeof value === 'string' &&
    value.trim() !== '' &&
    Buffer.byteLength(value) <= maxPasswordBytes;
  if (!isValid) throw refuse('invalidPassword');
  return value;
}

/**
 * Reads an e-mail address; case is significant (protocol/users.md#user-fields). Throws 125, also
 * for control characters, which must not reach a mail header.
 */
export function readEmail(value: unknown): string {
  const isValid =
    typeof value === 'string' &&
    value.length <= maxEmailLength &&
    value.isWellFormed() &&
    emailForm.test(value);
  if (!isValid) throw refuse('invalidEmail');
  return value;
}

/** Reads a phone number and returns it as E.164. Throws 127. */
export function readPhone(value: unknown): string {
  const phone = parsePhone(value);
  if (!phone) throw refuse('invalidPhone');
  return phone.e164;
}

/**
 * Checks the custom members of a user, or of the object that `noun` names. Throws 116 for too many
 * or too large ones.
 */
export function checkFields(members: Members, noun = 'A user'): JsonObject {
  if (members.size > maxFields)
    throw refuse('tooLarge', `${noun} has at most ${maxFields} members.`);
  const fields: Record<string, Json> = Object.fromEntries(members);
  if (Buffer.byteLength(JSON.stringify(fields)) > maxUserBytes)
    throw refuse('tooLarge', `${noun} is at most ${maxUserBytes} bytes.`);
  return fields;
}
