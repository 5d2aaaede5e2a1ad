import type { Json, JsonObject } from '../json.ts';
import { type Acl, publicAcl } from '../objects/acl.ts';
import { type AuthData, unionMembers } from './auth-data.ts';
import { shownAuthData } from './auth-tokens.ts';

/** Returns the size of a user's client-writable members, as JSON in UTF-8. */
export const draftBytes = (draft: UserDraft): number =>
  Buffer.byteLength(JSON.stringify([draft.username, draft.email, draft.authData, draft.acl, draft.fields]));

/** Client-writable members of a user. Null: absent. */
export interface UserDraft {
  username: string;
  email: string | null;
  /** True: verified; false: pending; null: not requested (protocol/users.md#e-mail-verification). */
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

/** User of an app, as its row stores it (protocol/users.md#user-fields, develop/architecture.md#data). */
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
  /** Decrypts the tokens of third-party accounts. Without it the document omits them: clients never need them back. */
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
export function draftDocument(user: UserDraft, { isOwn, open, hasAcl = false }: UserView): JsonObject {
  return Object.fromEntries([
    ...Object.entries(user.fields),
    ['username', user.username],
    ...(user.email === null ? [] : [['email', user.email] as const]),
    ['emailVerified', user.emailVerified],
    ...(user.mobilePhoneNumber === null ? [] : [['mobilePhoneNumber', user.mobilePhoneNumber] as const]),
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
