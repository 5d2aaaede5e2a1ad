import { canonicalTime, timeOfDate } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { type Acl, readAcl } from '../objects/acl.ts';
import { applyWrites, isDeletion, memberPath, type Write } from '../objects/operations.ts';
import {
  type AuthDataChanges,
  anonymous,
  type CheckedAuthData,
  changedAuthData,
  readAuthData,
  readChange,
} from './auth-data.ts';
import {
  checkFields,
  draftBytes,
  readEmail,
  readPassword,
  readPhone,
  readUsername,
  type User,
  type UserDraft,
} from './user.ts';

/**
 * Changes in a body of POST or PUT. An undefined member stays unchanged, and null deletes a member.
 */
export interface UserChanges<A extends AuthDataChanges = AuthDataChanges> {
  username?: string;
  email?: string | null;
  mobilePhoneNumber?: string | null;
  /** Plain text. */
  password?: string;
  acl?: Acl | null;
  authData: A;
  /** `authData` as the caller sent it, before a hook or a platform changed it. */
  sentAuthData: AuthDataChanges;
  /** If true, `authData` is cleared before the changes are applied. */
  isAuthDataCleared: boolean;
  /** Writes of custom members. */
  writes: Write[];
  /** Members that only the service sets, as sent. A body may repeat but not change them. */
  protectedMembers: ReadonlyMap<string, Json>;
  /** Names of the top-level members that the body changes. */
  touched: ReadonlySet<string>;
}

/** Changes whose third-party accounts were checked. They may be written. */
export type CheckedUserChanges = UserChanges<CheckedAuthData>;

const protectedNames = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'sessionToken',
  'emailVerified',
  'mobilePhoneVerified',
  'mobilePhoneNumberVerified',
  'mobilePhone',
]);
/**
 * Maximum number of members per body, which limits the cost of a call. A user cannot have more
 * members.
 */
const maxMembersSent = 320;

/**
 * Parses a body. Ignores private members (`_…`, metadata of SDKs and batches;
 * protocol/objects.md#private-members). Throws error 105 for an invalid name, 116 for too many
 * members, and 123, 125, 127, 217, 218 and 250 to 252 for built-in members. Values of custom
 * members are checked when they are applied.
 */
export function readUserChanges(body: JsonObject): UserChanges {
  const entries = Object.entries(body).filter(([name, value]) => !isSdkMetadata(name, value));
  if (entries.length > maxMembersSent)
    throw refuse('tooLarge', `A call writes at most ${maxMembersSent} members.`);
  const writes: Write[] = [];
  const protectedMembers = new Map<string, Json>();
  const authData = new Map<string, JsonObject | null>();
  const touched = new Set<string>();
  const changes: UserChanges = {
    authData,
    sentAuthData: authData,
    isAuthDataCleared: false,
    writes,
    protectedMembers,
    touched,
  };
  for (const [name, value] of entries) {
    const path = memberPath(name);
    const [first, ...inner] = path;
    if (protectedNames.has(first)) protectedMembers.set(name, value);
    else {
      touched.add(first);
      if (first === 'authData') readAuthChange(changes, authData, { inner, value });
      else if (!readBuiltIn(changes, first, { inner, value })) writes.push({ path, value });
    }
  }
  return changes;
}

/** True if a member is metadata that SDKs add to an object. */
function isSdkMetadata(name: string, value: Json): boolean {
  return name.startsWith('_') || (name === 'className' && value === '_User');
}

/** Submitted value, and the path in its top-level member. */
interface Submitted {
  inner: string[];
  value: Json;
}

/**
 * Parses a built-in member, which is always set or deleted as a whole. Returns false if `name` is a
 * custom member.
 */
function readBuiltIn(changes: UserChanges, name: string, { inner, value }: Submitted): boolean {
  const isDeleted = value === null || isDeletion(value);
  switch (name) {
    case 'username':
      changes.username = readUsername(value);
      break;
    case 'password':
      changes.password = readPassword(value);
      break;
    case 'email':
      changes.email = isDeleted ? null : readEmail(value);
      break;
    case 'mobilePhoneNumber':
      changes.mobilePhoneNumber = isDeleted ? null : readPhone(value);
      break;
    case 'ACL':
      changes.acl = isDeleted ? null : readAcl(value);
      break;
    default:
      return false;
  }
  if (inner.length > 0) throw refuse('invalidKeyName', `${name} has no members.`);
  return true;
}

/**
 * Parses `authData` or `authData.<platform>`. Refuses longer paths, which could change an id
 * without its token.
 */
function readAuthChange(
  changes: UserChanges,
  authData: Map<string, JsonObject | null>,
  { inner, value }: Submitted,
): void {
  const [platform, ...deeper] = inner;
  if (deeper.length > 0) throw refuse('invalidKeyName', 'authData is changed by whole platforms.');
  if (platform !== undefined) {
    authData.set(platform, readChange(platform, value));
  } else if (isDeletion(value)) changes.isAuthDataCleared = true;
  else if (value !== null)
    for (const [name, entry] of readAuthData(value)) authData.set(name, entry);
}

/** Rules for changes. They depend on the app's options and on the caller. */
export interface UserRules {
  emailVerification: boolean;
  /** True if the caller has the master key. It may mark an address or number as verified. */
  isMaster: boolean;
  /** Maximum size of a user for callers with the app key (option `userBytes`). */
  maxBytes?: number | undefined;
  /**
   * Returns a user in its stored form, whose size is limited: the tokens of the current user are
   * encrypted. By default, the user as it is.
   */
  stored?: ((draft: UserDraft) => UserDraft) | undefined;
}

/** Returns a new user. Throws error 117 for protected members, and the errors of `changedUser`. */
export function newUser(
  changes: CheckedUserChanges,
  username: string,
  rules: UserRules,
): UserDraft {
  const empty: UserDraft = {
    username,
    email: null,
    emailVerified: null,
    mobilePhoneNumber: null,
    mobilePhoneVerified: false,
    authData: null,
    acl: null,
    fields: {},
  };
  return changedUser(empty, changes, rules);
}

/**
 * Returns the changed user. A new address or number is not verified
 * (protocol/users.md#phone-verification). Throws error 117 if a protected member changes, 105, 106,
 * 111 and 116 for custom members, and 116 if the user is too large.
 */
export function changedUser(
  current: User | UserDraft,
  changes: CheckedUserChanges,
  rules: UserRules,
): UserDraft {
  const members = new Map(Object.entries(current.fields));
  applyWrites(members, changes.writes);
  const { username = current.username, email = current.email, acl = current.acl } = changes;
  const { mobilePhoneNumber = current.mobilePhoneNumber } = changes;
  const isEmailNew = email !== current.email;
  const unverified = email !== null && rules.emailVerification ? false : null;
  const draft: UserDraft = {
    username,
    email,
    emailVerified: isEmailNew ? unverified : current.emailVerified,
    mobilePhoneNumber,
    mobilePhoneVerified:
      mobilePhoneNumber === current.mobilePhoneNumber && current.mobilePhoneVerified,
    authData: authDataAfter(current, changes),
    acl,
    fields: checkFields(members),
  };
  for (const [name, value] of changes.protectedMembers)
    applyProtected(draft, { name, value, current, rules });
  requireSize(draft, current, rules);
  return draft;
}

/**
 * Throws error 116 if a user grows beyond the limit. A user that the master key made larger may
 * still change and shrink.
 */
export function requireSize(
  draft: UserDraft,
  current: UserDraft,
  { maxBytes, stored = (one) => one }: UserRules,
): void {
  if (maxBytes === undefined || draftBytes(draft) <= maxBytes) return;
  const bytes = draftBytes(stored(draft));
  if (bytes > maxBytes && bytes > draftBytes(current))
    throw refuse('tooLarge', `A user is at most ${maxBytes} bytes.`);
}

/**
 * Returns the changed `authData`. Setting a password ends the anonymous state
 * (protocol/users.md#anonymous-users).
 */
function authDataAfter(current: UserDraft, changes: CheckedUserChanges): UserDraft['authData'] {
  const base = changes.isAuthDataCleared && current.authData !== null ? {} : current.authData;
  const changed = changedAuthData(base, changes.authData);
  if (changes.password === undefined || changed === null || !Object.hasOwn(changed, anonymous))
    return changed;
  const { [anonymous]: _, ...rest } = changed;
  return rest;
}

interface ProtectedWrite {
  name: string;
  value: Json;
  current: User | UserDraft;
  rules: UserRules;
}

function applyProtected(draft: UserDraft, { name, value, current, rules }: ProtectedWrite): void {
  if (rules.isMaster && typeof value === 'boolean') {
    if (name === 'emailVerified' && draft.email !== null) {
      draft.emailVerified = value;
      return;
    }
    if (name === 'mobilePhoneVerified' && draft.mobilePhoneNumber !== null) {
      draft.mobilePhoneVerified = value;
      return;
    }
  }
  if (!isUnchanged(name, value, current))
    throw refuse('readOnlyKey', `The key is read only. The column is: '${name}'.`);
}

function isUnchanged(name: string, value: Json, current: User | UserDraft): boolean {
  switch (name) {
    case 'emailVerified':
      return value === current.emailVerified;
    case 'mobilePhoneVerified':
    case 'mobilePhoneNumberVerified':
      return value === current.mobilePhoneVerified;
    case 'mobilePhone':
      return value === current.mobilePhoneNumber;
  }
  if (!('objectId' in current)) return false;
  if (name === 'objectId') return value === current.objectId;
  const stored = { createdAt: current.createdAt, updatedAt: current.updatedAt }[name];
  return stored !== undefined && timeIn(value) === stored.toISOString();
}

const timeIn = (value: Json): string | undefined =>
  typeof value === 'string'
    ? canonicalTime(value)
    : isJsonObject(value)
      ? timeOfDate(value)
      : undefined;
