import { isImportedHash, saltedHash } from '../../api/services/accounts/passwords/imported-hashes.ts';
import type { Sessions } from '../../api/services/accounts/sessions/sessions.ts';
import type { StagedUser } from '../../shared/db/tables/import/users.ts';
import { refuse } from '../../shared/domain/errors/errors.ts';
import { newUsername } from '../../shared/domain/ids.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { canonicalValue, isMemberName } from '../../shared/domain/objects/typed-values.ts';
import { type AuthData, identitiesOf, withoutSeal } from '../../shared/domain/users/auth-data.ts';
import { type Sealer, sealedAuthData } from '../../shared/domain/users/auth-tokens.ts';
import { checkFields, readEmail, readPhone, readUsername } from '../../shared/domain/users/members.ts';
import type { SessionSecret, UserDraft } from '../../shared/domain/users/user.ts';
import { aclOf, booleanOrNull, headOf, membersOf, textOrNull, within } from './record.ts';

/** Members that have a place of their own, or none; all others are the app's. */
const ownNames = new Set([
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
const isOwn = (name: string, value: Json): boolean =>
  ownNames.has(name) || name.startsWith('_') || (name === 'className' && value === '_User');

/** Read with every user that logs in. */
const maxAuthBytes = 256 * 1024;

/** Where a user comes from and goes to. */
interface Place {
  line: number;
  now: Date;
  appId: string;
  sessions: Sessions;
  /** Seals the tokens of its third-party accounts. */
  sealer: Sealer;
}

/**
 * A user of an export. Names, addresses and numbers keep the rules of registration (shared/domain), so that a login
 * finds them; third-party accounts need no token of the platform, since that was seen where they come from. Throws a
 * refusal whose sentence names the member and quotes no value.
 */
export function readUser(record: JsonObject, { line, now, appId, sessions, sealer }: Place): StagedUser {
  const head = headOf(record, now);
  const draft = draftOf(record);
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

function draftOf(record: JsonObject): UserDraft {
  const [username, email, phone] = ['username', 'email', 'mobilePhoneNumber'].map((name) =>
    textOrNull(record, name),
  );
  const isPhoneVerified =
    booleanOrNull(record, 'mobilePhoneVerified') ?? booleanOrNull(record, 'mobilePhoneNumberVerified');
  return {
    // Who has no name of its own has one that was made up there as well.
    username: username ? readUsername(username) : newUsername(),
    email: email ? readEmail(email) : null,
    emailVerified: booleanOrNull(record, 'emailVerified'),
    mobilePhoneNumber: phone ? readPhone(phone) : null,
    mobilePhoneVerified: isPhoneVerified ?? false,
    authData: authDataOf(record.authData),
    acl: aclOf(record.ACL),
    fields: checkFields(membersOf(record, isOwn)),
  };
}

/** UnionIDs (`_…_unionid`) are what was shown beside the platforms: they are made from these again. */
function authDataOf(value: Json | undefined): AuthData | null {
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) throw refuse('incorrectType', 'authData must be a dictionary.');
  const entries = Object.entries(value).filter(([name, entry]) => !name.startsWith('_') && entry !== null);
  const authData = Object.fromEntries(entries.map(([name, entry]) => [name, entryOf(name, entry)]));
  if (Buffer.byteLength(JSON.stringify(authData)) > maxAuthBytes)
    throw refuse('tooLarge', `authData is at most ${maxAuthBytes} bytes.`);
  return authData;
}

function entryOf(platform: string, value: Json): JsonObject {
  if (!isMemberName(platform))
    throw refuse('invalidKeyName', 'A platform of authData has a name that cannot be stored.');
  return within(`authData.${platform}`, () => {
    const entry = withoutSeal(canonicalValue(value));
    if (!isJsonObject(entry) || Object.hasOwn(entry, '__type')) throw refuse('linkedIdMissing');
    // Throws when the entry names no account.
    identitiesOf({ [platform]: entry });
    return entry;
  });
}

/** bcrypt as it is; else the salted form of the public service (api/services/accounts/passwords/imported-hashes.ts). */
function passwordHashOf(record: JsonObject): string | null {
  const [password, salt] = [textOrNull(record, 'password'), textOrNull(record, 'salt')];
  if (password === null) return null;
  const hash = isImportedHash(password) ? password : saltedHash({ password, salt: salt ?? '' });
  if (isImportedHash(hash)) return hash;
  throw refuse(
    'invalidPassword',
    'password is no hash that can be checked here (that of the public service, with its salt, or bcrypt). Without the member the user is imported and has to reset it.',
  );
}

/** The session of the export goes on; who has none gets a new one. */
function sessionOf(
  record: JsonObject,
  { appId, objectId, sessions }: { appId: string; objectId: string; sessions: Sessions },
): SessionSecret {
  const token = textOrNull(record, 'sessionToken');
  const session =
    token === null ? sessions.create(appId, objectId) : sessions.createFromToken(appId, objectId, token);
  if (session) return session;
  throw refuse(
    'incorrectType',
    'sessionToken is no token (16 to 128 letters, digits, - and _). Without the member the user is imported and has to log in.',
  );
}
