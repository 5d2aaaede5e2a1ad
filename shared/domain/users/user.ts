import { randomBytes } from 'node:crypto';
import { domainToASCII } from 'node:url';
import { sealContexts } from '../apps/seal-contexts.ts';
import { refuse } from '../errors/errors.ts';
import type { Json, JsonObject } from '../json.ts';
import { parsePhone } from '../messages/phone.ts';
import { type Acl, publicAcl } from '../objects/acl.ts';
import type { Members } from '../objects/operations.ts';
import { type AuthData, type Sealer, unionMembers, visibleAuthData } from './auth-data.ts';

/** Returns the size of the members that clients write, as JSON in UTF-8. */
export const draftBytes = (draft: UserDraft): number =>
  Buffer.byteLength(
    JSON.stringify([draft.username, draft.email, draft.authData, draft.acl, draft.fields]),
  );

/** Members of a user that clients write. Null means absent. */
export interface UserDraft {
  username: string;
  email: string | null;
  /**
   * True if verified, false if verification is pending, null if it was not requested
   * (protocol/users.md#e-mail-verification).
   */
  emailVerified: boolean | null;
  /** Phone number in E.164 form. */
  mobilePhoneNumber: string | null;
  mobilePhoneVerified: boolean;
  /** In a stored user, the tokens are encrypted (`sealedAuthData`). */
  authData: AuthData | null;
  acl: Acl | null;
  /** All other members. */
  fields: JsonObject;
}

/**
 * User of an app as stored in its row (protocol/users.md#user-fields,
 * develop/architecture.md#data).
 */
export interface User extends UserDraft {
  /** Internal id in the app. Never part of a reply. */
  id: number;
  objectId: string;
  /**
   * Argon2id hash in PHC form, or an imported hash; null if the user has no password. Never part of
   * a reply.
   */
  passwordHash: string | null;
  session: SessionSecret;
  createdAt: Date;
  updatedAt: Date;
}

/**
 * Nonce that a session token is derived from, and the digest of the token. Never part of a reply.
 */
export interface SessionSecret {
  nonce: Buffer;
  hash: Buffer;
}

/** Options of a user's document. They depend on the caller. */
export interface UserView {
  /** True for the user itself and the master key. Only they see third-party accounts. */
  isOwn: boolean;
  /**
   * Decrypts the tokens of third-party accounts. If absent, the document contains no tokens,
   * because clients do not need them.
   */
  open?: ((authData: AuthData) => AuthData) | undefined;
  /**
   * True with `returnACL=true` (protocol/queries.md#query-parameters), which includes a default ACL
   * if the user has none. `stored` includes only an ACL that the user has.
   */
  hasAcl?: boolean | 'stored';
}

/** Returns a user for a reply, without password and session token. */
export function userDocument(user: User, view: UserView): JsonObject {
  return {
    ...draftDocument(user, view),
    objectId: user.objectId,
    createdAt: user.createdAt.toISOString(),
    updatedAt: user.updatedAt.toISOString(),
  };
}

/** Like `userDocument`, for a user that is not stored yet. */
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
  const visible = acl ?? (hasAcl === true ? publicAcl : null);
  return hasAcl && visible ? [['ACL', visible]] : [];
}

function authMembers(authData: AuthData | null, open = visibleAuthData): [string, Json][] {
  if (authData === null) return [];
  const unions = unionMembers(authData);
  return [['authData', { ...open(authData), ...unions }], ...Object.entries(unions)];
}

/** Returns the members of a document that are in `names`. */
export function pickUserMembers(document: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(document).filter(([name]) => names.has(name)));
}

/** Mail domains that ignore dots before the `@`, and their canonical name. */
const dotless = new Map([
  ['gmail.com', 'gmail.com'],
  ['googlemail.com', 'gmail.com'],
]);

/**
 * Returns the same text for all spellings of an address that reach the same mailbox, to count mails
 * to it. Spellings may differ in case, compatible characters, a tag after `+`, the two forms of a
 * domain, and dots that a provider ignores. Only limits use this text; for accounts, these
 * addresses are different.
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
 * Maximum size of a user. Each login reads the row, so the limit is far below the 16 MB
 * of LeanCloud.
 */
export const maxUserBytes = 1024 * 1024;
/** Maximum number of custom members, as on LeanCloud (protocol/objects.md#object-limits). */
const maxFields = 300;
/** Pattern of a user name: not blank, without control characters, and short enough for an index. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused
export const usernameForm = /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]{1,255}$/;
const maxEmailLength = 254;
/** Maximum length of a password. Hashing takes longer for longer passwords. */
export const maxPasswordBytes = 1024;

const emailForm =
  /^[^\s@\p{Cc}"<>(),:;[\]\\]{1,64}@[^\s@\p{Cc}"<>(),:;[\]\\]+\.[^\s@\p{Cc}"<>(),:;[\]\\]+$/u;

/**
 * Parses a user name. Case and blanks inside the name matter. Throws error 200 if it is empty and
 * 217 if it is invalid.
 */
export function readUsername(value: unknown): string {
  if (value === '') throw refuse('usernameMissing');
  const isValid = typeof value === 'string' && usernameForm.test(value) && value.isWellFormed();
  if (!isValid) throw refuse('invalidUsername');
  return value;
}

/**
 * Parses a password. Throws error 201 if it is empty, and 218 if it is blank, too long or not a
 * string.
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
 * Parses an e-mail address. Case matters (protocol/users.md#user-fields). Throws error 125 if it is
 * invalid. Control characters are refused, because they must not reach a mail header.
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

/** Parses a phone number and returns its E.164 form. Throws error 127 if it is invalid. */
export function readPhone(value: unknown): string {
  const phone = parsePhone(value);
  if (!phone) throw refuse('invalidPhone');
  return phone.e164;
}

/**
 * Checks the custom members of a user, or of the object that `noun` names. Throws error 116 if
 * there are too many or they are too large.
 */
export function checkFields(members: Members, noun = 'A user'): JsonObject {
  if (members.size > maxFields)
    throw refuse('tooLarge', `${noun} has at most ${maxFields} members.`);
  const fields: Record<string, Json> = Object.fromEntries(members);
  if (Buffer.byteLength(JSON.stringify(fields)) > maxUserBytes)
    throw refuse('tooLarge', `${noun} is at most ${maxUserBytes} bytes.`);
  return fields;
}

/** Derives and encrypts session tokens (`Vault` in shared/crypto.ts). */
export interface TokenSource extends Sealer {
  /** Ids of the keys, first key first. An id has 8 hexadecimal digits. */
  readonly keyIds: readonly [string, ...string[]];
  derivedBy(context: string): string[];
}

const tokenLength = 25;
const tokenCount = 36n ** BigInt(tokenLength);
/** Length of a nonce. A longer value is an encrypted token. */
const nonceBytes = 16;
const keyIdBytes = 4;

/**
 * Creates the nonce of a session: the id of the first key and 96 random bits. The id names the key
 * that derived the token, so no computation per user is needed. Nonces of older versions are
 * completely random.
 */
export const newSessionNonce = ({ keyIds: [first] }: TokenSource): Buffer =>
  Buffer.concat([Buffer.from(first, 'hex'), randomBytes(nonceBytes - keyIdBytes)]);

/** Encrypts a token. The result is stored instead of the session's nonce. */
export const sealedSession = (
  source: TokenSource,
  appId: string,
  objectId: string,
  token: string,
): Buffer => source.seal(token, sealContexts.session(appId, objectId));

/**
 * Returns the tokens of a stored nonce, one per key, first key first. If an encrypted token is
 * stored instead, returns only this token, and throws `SealError` if no key decrypts it.
 */
export function sessionTokens(
  source: TokenSource,
  appId: string,
  objectId: string,
  nonce: Buffer,
): string[] {
  if (nonce.length !== nonceBytes)
    return [String(source.open(nonce, sealContexts.session(appId, objectId)))];
  return source.derivedBy(`session ${appId} ${objectId} ${nonce.toString('hex')}`).map((secret) => {
    const number = BigInt(`0x${Buffer.from(secret, 'base64url').toString('hex')}`) % tokenCount;
    return number.toString(36).padStart(tokenLength, '0');
  });
}
