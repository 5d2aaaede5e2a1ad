import { isImportedHash, saltedHash } from '../../api/services/accounts/passwords/passwords.ts';
import type { Sessions } from '../../api/services/accounts/sessions/sessions.ts';
import type { StagedMembership, StagedRole } from '../../shared/db/tables/import-roles.ts';
import type { StagedUser } from '../../shared/db/tables/import-users.ts';
import type { ImportedInstallation } from '../../shared/db/tables/imports.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { newUsername } from '../../shared/domain/ids.ts';
import { isPublicId } from '../../shared/domain/installations/identity.ts';
import {
  hasWireName,
  isObjectHint,
  neutralName,
} from '../../shared/domain/installations/installation.ts';
import { draftOf } from '../../shared/domain/installations/members.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { parsePhone } from '../../shared/domain/messages/phone.ts';
import { canonicalValue, isMemberName } from '../../shared/domain/objects/typed-values.ts';
import { defaultRoleAcl, readRoleName, requireRoleSize } from '../../shared/domain/roles/role.ts';
import {
  type AuthData,
  identitiesOf,
  type Sealer,
  sealedAuthData,
  unionOf,
  withoutSeal,
} from '../../shared/domain/users/auth-data.ts';
import {
  checkFields,
  readEmail,
  readUsername,
  type SessionSecret,
  type UserDraft,
} from '../../shared/domain/users/user.ts';
import { say } from '../cli/language.ts';
import { aclOf, booleanOrNull, headOf, membersOf, textOrNull, within } from './record.ts';

const headNames = new Set(['objectId', 'createdAt', 'updatedAt']);
const isInstallationMember = (name: string, value: Json): boolean =>
  headNames.has(name) || isObjectHint(name, value);

/**
 * Reads an installation of an export, with the checks of a registration (shared/domain). Throws a
 * refusal that names the member but quotes no value.
 */
export function readInstallation(record: JsonObject, now: string): ImportedInstallation {
  const draft = draftOf(membersOf(record, isInstallationMember, neutralName), hasWireName(record));
  const { deviceToken, installationId, subscriptionKeys } = draft;
  if (deviceToken === null && installationId === null && subscriptionKeys === null)
    throw refuse(
      'incorrectType',
      say('It has neither a deviceToken nor an installationId: nothing reaches it.'),
    );
  const { objectId, createdAt, updatedAt } = headOf(record, now);
  return { draft, objectId, createdAt, updatedAt, importedAt: now };
}

/**
 * Members that are not stored as fields of the app. The members of a role come from separate files.
 */
const roleMembers = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'name',
  'ACL',
  'users',
  'roles',
]);
const isRoleMember = (name: string, value: Json): boolean =>
  roleMembers.has(name) || name.startsWith('_') || (name === 'className' && value === '_Role');

/**
 * Reads a role of an export, with the checks of a newly created role. A role without an ACL gets
 * the same default as a role created with the master key, so that no other users can change it.
 * Throws a refusal that quotes no value.
 */
export function readRole(
  record: JsonObject,
  { line, now }: { line: number; now: string },
): StagedRole {
  const head = headOf(record, now);
  const draft = {
    name: readRoleName(record.name),
    acl: aclOf(record.ACL) ?? defaultRoleAcl,
    fields: checkFields(membersOf(record, isRoleMember), 'A role'),
  };
  requireRoleSize(draft);
  return { line, draft, ...head };
}

/**
 * Reads a line of `_Join:users:_Role` or `_Join:roles:_Role`: `{"owningId","relatedId"}`. Each
 * member is an id or a pointer. Throws error 104.
 */
export function readMembership(record: JsonObject, { line }: { line: number }): StagedMembership {
  const [role, member] = [idUnder(record, 'owningId'), idUnder(record, 'relatedId')];
  return { line, objectId: `${role} ${member}`, role, member };
}

function idUnder(record: JsonObject, name: 'owningId' | 'relatedId'): string {
  const value = record[name];
  const id = isJsonObject(value) ? value.objectId : value;
  if (typeof id === 'string' && isPublicId(id)) return id;
  throw refuse('missingObjectId', say('{name} is missing or is no id.', { name }));
}

/** Members that are not stored as fields of the app. */
const userMembers = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'username',
  'email',
  'emailVerified',
  'mobilePhoneNumber',
  'mobilePhoneVerified',
  'mobilePhoneNumberVerified',
  'authData',
  'ACL',
  'password',
  'salt',
  'sessionToken',
]);
const isUserMember = (name: string, value: Json): boolean =>
  userMembers.has(name) || name.startsWith('_') || (name === 'className' && value === '_User');

/** Size limit of `authData` in bytes. It is read at every login. */
const maxAuthBytes = 256 * 1024;

/** Context in which a user is read. */
interface UserContext {
  line: number;
  /** Time that replaces missing times (ISO 8601). */
  now: string;
  appId: string;
  sessions: Sessions;
  /** Encrypts the tokens of the user's third-party accounts. */
  sealer: Sealer;
}

/**
 * Reads a user of an export. Names, addresses and numbers are checked as in a registration
 * (shared/domain), so that a login finds them. The third-party tokens are not verified again,
 * because LeanCloud did this. Throws a refusal that names the member but quotes no value.
 */
export function readUser(
  record: JsonObject,
  { line, now, appId, sessions, sealer }: UserContext,
): StagedUser {
  const head = headOf(record, now);
  const draft = userDraftOf(record);
  const { authData } = draft;
  return {
    line,
    ...head,
    draft: { ...draft, authData: authData && sealedAuthData(sealer, appId, authData) },
    passwordHash: passwordHashOf(record),
    session: sessionOf(record, { appId, objectId: head.objectId, sessions }),
    identities: identitiesOf(authData ?? {}),
  };
}

function userDraftOf(record: JsonObject): UserDraft {
  const [username, email, phone] = ['username', 'email', 'mobilePhoneNumber'].map((name) =>
    textOrNull(record, name),
  );
  const isPhoneVerified =
    booleanOrNull(record, 'mobilePhoneVerified') ??
    booleanOrNull(record, 'mobilePhoneNumberVerified');
  const number = phone ? phoneOf(phone) : null;
  return {
    // If the user has no name, generates a name. LeanCloud does so too.
    username: username ? readUsername(username) : newUsername(),
    email: email ? readEmail(email) : null,
    emailVerified: booleanOrNull(record, 'emailVerified'),
    mobilePhoneNumber: number,
    mobilePhoneVerified: number !== null && isPhoneVerified === true,
    authData: authDataOf(record.authData),
    acl: aclOf(record.ACL),
    fields: checkFields(membersOf(record, isUserMember)),
  };
}

/**
 * Reads a phone number. If this service cannot parse the number, keeps its digits, so that the user
 * is imported and can change it later. Returns null if the text contains no number.
 */
function phoneOf(text: string): string | null {
  const digits = text.replaceAll(/[^\d+]/g, '');
  return parsePhone(text)?.e164 ?? (/^\+?\d{3,20}$/.test(digits) ? digits : null);
}

/**
 * Reads authData without its `_…_unionid` entries, with which LeanCloud finds a user by
 * UnionID. If an entry with a UnionID does not say whether it is the main account, it becomes the
 * main account.
 */
function authDataOf(value: Json | undefined): AuthData | null {
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) throw refuse('incorrectType', say('authData must be a dictionary.'));
  const entries = Object.entries(value).filter(
    ([name, entry]) => !name.startsWith('_') && entry !== null,
  );
  const found = new Map(Object.entries(value));
  const authData = Object.fromEntries(
    entries.map(([name, entry]) => [name, withMainAccount(entryOf(name, entry), found)]),
  );
  if (Buffer.byteLength(JSON.stringify(authData)) > maxAuthBytes)
    throw refuse('tooLarge', say('authData is at most {bytes} bytes.', { bytes: maxAuthBytes }));
  return authData;
}

function withMainAccount(entry: JsonObject, found: ReadonlyMap<string, Json>): JsonObject {
  const union = unionOf(entry);
  const holder = union && found.get(union.platform);
  const isFound = isJsonObject(holder) && holder.uid === union?.uid;
  return isFound && entry.main_account === undefined ? { ...entry, main_account: true } : entry;
}

function entryOf(platform: string, value: Json): JsonObject {
  if (!isMemberName(platform))
    throw refuse('invalidKeyName', say('A platform of authData has a name that cannot be stored.'));
  return within(`authData.${platform}`, () => {
    const entry = withoutSeal(canonicalValue(value));
    if (!isJsonObject(entry) || Object.hasOwn(entry, '__type')) throw refuse('linkedIdMissing');
    // Throws if the entry has no account id.
    identitiesOf({ [platform]: entry });
    return entry;
  });
}

/**
 * Returns the password hash: bcrypt, or LeanCloud's salted hash
 * (api/services/accounts/passwords/passwords.ts).
 */
function passwordHashOf(record: JsonObject): string | null {
  const [password, salt] = [textOrNull(record, 'password'), textOrNull(record, 'salt')];
  if (password === null) return null;
  const hash = isImportedHash(password) ? password : saltedHash({ password, salt: salt ?? '' });
  if (isImportedHash(hash)) return hash;
  throw refuse(
    'invalidPassword',
    say(
      'password is no hash that can be checked here (that of LeanCloud, with its salt, or bcrypt). Without the member the user is imported and has to reset it.',
    ),
  );
}

/** Returns the session of the export, or a new session if the export has none. */
function sessionOf(
  record: JsonObject,
  { appId, objectId, sessions }: { appId: string; objectId: string; sessions: Sessions },
): SessionSecret {
  const token = textOrNull(record, 'sessionToken');
  const session =
    token === null
      ? sessions.create(appId, objectId)
      : sessions.createFromToken(appId, objectId, token);
  if (session) return session;
  throw refuse(
    'incorrectType',
    say(
      'sessionToken is no token (16 to 128 letters, digits, - and _). Without the member the user is imported and has to log in.',
    ),
  );
}
