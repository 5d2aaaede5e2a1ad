import type { Json, JsonObject } from '../json.ts';
import type { Acl } from '../objects/acl.ts';
import { type AuthData, unionMembers } from './auth-data.ts';
import { shownAuthData } from './auth-tokens.ts';

/** How much a user takes in the database, as JSON in UTF-8: all that clients decide. */
export const draftBytes = (draft: UserDraft): number =>
  Buffer.byteLength(JSON.stringify([draft.username, draft.email, draft.authData, draft.acl, draft.fields]));

/** What may be shown of a user, and what clients decide. Null is absent. */
export interface UserDraft {
  username: string;
  email: string | null;
  /** True: confirmed; false: not yet; null: never asked (protocol/users.md#e-mail-verification). */
  emailVerified: boolean | null;
  /** E.164. */
  mobilePhoneNumber: string | null;
  mobilePhoneVerified: boolean;
  /** Of a stored user with its tokens sealed (auth-tokens.ts). */
  authData: AuthData | null;
  acl: Acl | null;
  /** Every other member. */
  fields: JsonObject;
}

/** A user of an app (protocol/users.md#user-fields, develop/architecture.md#data), as its row holds it. */
export interface User extends UserDraft {
  /** Key within the app; never shown. */
  id: number;
  objectId: string;
  /** PHC form of Argon2id, or of an import; null: cannot log in with a password. Never shown. */
  passwordHash: string | null;
  session: SessionSecret;
  createdAt: Date;
  updatedAt: Date;
}

/** What a session token is derived from, and the digest it is found by. Never shown. */
export interface SessionSecret {
  nonce: Buffer;
  hash: Buffer;
}

/** Who looks at a user decides what there is to see. */
export interface UserView {
  /** The user itself, or the master key: no other caller sees third-party accounts. */
  isOwn: boolean;
  /** Opens the sealed tokens of third-party accounts. Without it a document has none: clients never need them back. */
  open?: ((authData: AuthData) => AuthData) | undefined;
  /** `returnACL=true` (protocol/queries.md#query-parameters). */
  hasAcl?: boolean;
}

/** The user as replies show it: never a password, and a session token only where the caller adds it. */
export function userDocument(user: User, view: UserView): JsonObject {
  return {
    ...draftDocument(user, view),
    objectId: user.objectId,
    createdAt: user.createdAt.toISOString(),
    updatedAt: user.updatedAt.toISOString(),
  };
}

/** As `userDocument`, of one that is not stored yet. */
export function draftDocument(user: UserDraft, { isOwn, open, hasAcl = false }: UserView): JsonObject {
  return Object.fromEntries([
    ...Object.entries(user.fields),
    ['username', user.username],
    ...(user.email === null ? [] : [['email', user.email] as const]),
    ['emailVerified', user.emailVerified],
    ...(user.mobilePhoneNumber === null ? [] : [['mobilePhoneNumber', user.mobilePhoneNumber] as const]),
    ['mobilePhoneVerified', user.mobilePhoneVerified],
    ...(isOwn ? authMembers(user.authData, open) : []),
    ...(hasAcl && user.acl !== null ? [['ACL', user.acl] as const] : []),
  ]);
}

function authMembers(authData: AuthData | null, open = shownAuthData): [string, Json][] {
  if (authData === null) return [];
  const unions = unionMembers(authData);
  return [['authData', { ...open(authData), ...unions }], ...Object.entries(unions)];
}

/** The members of a document with these names. */
export function pickUserMembers(document: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(document).filter(([name]) => names.has(name)));
}
