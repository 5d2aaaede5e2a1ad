import { sealContexts } from '../apps/seal-contexts.ts';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { isDeletion, isOperation, stableText } from '../objects/operations.ts';
import { canonicalValue, isMemberName } from '../objects/typed-values.ts';

/** Third-party accounts of a user by platform (protocol/users.md#third-party-accounts). */
export type AuthData = Record<string, JsonObject>;

/** Platform of anonymous users. */
export const anonymous = 'anonymous';

/** Member of a stored entry that contains its encrypted secrets in base64 (`sealedAuthData`). */
const sealedMember = '_sealed';

/** Third-party account as stored in `user_identity`. */
export interface Identity {
  platform: string;
  uid: string;
}

/** Changes of a user's platforms: an entry links an account, null unlinks it. */
export type AuthDataChanges = ReadonlyMap<string, JsonObject | null>;

declare const checkedBrand: unique symbol;

/**
 * Changes whose entries were checked. Users are only written from this type, so that no caller can
 * forget the check. With an unchecked entry, any client could log in to the account.
 */
export type CheckedAuthData = AuthDataChanges & { readonly [checkedBrand]: true };

/**
 * Marks changes as checked. `by` says who vouches for the entries: their platforms
 * (`AuthPlatforms`), or the app's function host, which has the master key. Throws error 250 if an
 * entry has no id, because its `code` was not exchanged.
 */
export function vouchFor(
  changes: AuthDataChanges,
  _by: 'platforms' | 'function host',
): CheckedAuthData {
  for (const [platform, entry] of changes) if (entry) identityOf(platform, entry);
  return changes as CheckedAuthData;
}

/**
 * Mini programs. A client sends a `code` instead of an id, and the platform exchanges the code for
 * the account (protocol/users.md#mini-programs).
 */
const codePlatforms: ReadonlySet<string> = new Set(['lc_weapp', 'lc_qqapp']);

/**
 * Platforms whose user id is called `openid`. Other platforms call it `uid`
 * (protocol/users.md#third-party-accounts).
 */
const openidPlatforms = new Set(['weixin', 'qq', ...codePlatforms]);

const maxPlatforms = 20;
const maxEntryBytes = 16 * 1024;
const idText = /^[^\s\p{Cc}]{1,255}$/u;
/**
 * Id of an anonymous user. It must be hard to guess, because it is the only credential. SDKs use at
 * least 16 characters.
 */
const anonymousId = /^[A-Za-z0-9-]{16,64}$/;

/**
 * Parses `authData`. Ignores members that begin with `_`, because replies contain such members.
 * Throws error 250 if an id is missing, and 105, 111 and 116 for values that cannot be stored.
 * Tokens are checked by `requireToken`.
 */
export function readAuthData(value: unknown): AuthDataChanges {
  if (!isJsonObject(value)) throw refuse('incorrectType', 'authData must be a dictionary.');
  const entries = Object.entries(value).filter(([name]) => !name.startsWith('_'));
  if (entries.length > maxPlatforms)
    throw refuse('tooLarge', `authData has at most ${maxPlatforms} platforms.`);
  return new Map(entries.map(([platform, entry]) => [platform, readChange(platform, entry)]));
}

/**
 * Parses the change of one platform: an entry, or null to unlink it. Python and PHP SDKs send null,
 * others `Delete`. Throws the errors of `readEntry`.
 */
export function readChange(platform: string, value: unknown): JsonObject | null {
  if (!isMemberName(platform)) throw refuse('invalidKeyName');
  return value === null || isDeletion(value) ? null : readEntry(platform, value);
}

/** Parses the entry of one platform. Throws the errors of `readAuthData`. */
function readEntry(platform: string, value: unknown): JsonObject {
  if (!isMemberName(platform)) throw refuse('invalidKeyName');
  if (!isJsonObject(value) || isOperation(value)) throw refuse('linkedIdMissing');
  const entry = withoutSeal(canonicalValue(value));
  if (!isJsonObject(entry) || Object.hasOwn(entry, '__type')) throw refuse('linkedIdMissing');
  if (Buffer.byteLength(JSON.stringify(entry)) > maxEntryBytes)
    throw refuse('tooLarge', `An entry of authData is at most ${maxEntryBytes} bytes.`);
  if (!isIncomplete(platform, entry)) identityOf(platform, entry);
  checkTokens(entry);
  unionOf(entry);
  return entry;
}

/** Removes a member from a submitted entry that only the service may write. */
export function withoutSeal(value: Json): Json {
  if (!isJsonObject(value) || !Object.hasOwn(value, sealedMember)) return value;
  const { [sealedMember]: _, ...entry } = value;
  return entry;
}

/**
 * Returns the account of an entry. Throws error 250 if it has no valid id, and 111 if the id is not
 * a string.
 */
export function identityOf(platform: string, entry: JsonObject): Identity {
  const uid = uidOf(platform, entry);
  if (uid === undefined || uid === null || uid === '') throw refuse('linkedIdMissing');
  if (typeof uid !== 'string') throw refuse('incorrectType', 'The id in authData must be a text.');
  const form = platform === anonymous ? anonymousId : idText;
  if (!form.test(uid)) throw refuse('linkedIdMissing', 'The id in authData is malformed.');
  return { platform, uid };
}

/** True if an entry has a code, which the platform exchanges for the id. */
const isIncomplete = (platform: string, entry: JsonObject): boolean =>
  codePlatforms.has(platform) && Boolean(entry.code) && uidOf(platform, entry) === undefined;

/**
 * Returns the id of an entry. Clients also use `openid` for custom platforms
 * (protocol/users.md#third-party-accounts).
 */
function uidOf(platform: string, entry: JsonObject): Json | undefined {
  const own = (name: string) => (Object.hasOwn(entry, name) ? entry[name] : undefined);
  if (platform === anonymous) return own('id');
  return openidPlatforms.has(platform)
    ? (own('openid') ?? own('uid'))
    : (own('uid') ?? own('openid'));
}

/** Throws error 111 if a token is not a string. */
function checkTokens(entry: JsonObject): void {
  for (const name of ['access_token', 'identity_token', 'code', 'refresh_token'])
    if (Object.hasOwn(entry, name) && entry[name] !== null && typeof entry[name] !== 'string')
      throw refuse('incorrectType', `${name} in authData must be a text.`);
}

/**
 * Throws error 251 (252 for weixin) if an entry has no access token. Platforms with identity tokens
 * and anonymous users need none (protocol/users.md#third-party-accounts).
 */
export function requireToken(platform: string, entry: JsonObject): void {
  const isTokenNeeded =
    platform !== anonymous &&
    !Object.hasOwn(entry, 'identity_token') &&
    !platform.startsWith('lc_');
  if (isTokenNeeded && !entry.access_token)
    throw refuse(platform === 'weixin' ? 'invalidWeixinSession' : 'invalidLinkedSession');
}

/**
 * Returns the UnionID of an entry as an identity (protocol/users.md#unionid); undefined if there is
 * none. `main_account` may be a string or boolean. Throws error 111 for wrong types.
 */
export function unionOf(entry: JsonObject): Identity | undefined {
  const { unionid, platform, main_account: isMain } = entry;
  if (isMain !== undefined && ![true, false, 'true', 'false'].some((word) => word === isMain))
    throw refuse('incorrectType', 'main_account in authData must be true or false.');
  if (unionid === undefined || platform === undefined) return undefined;
  const isValid =
    typeof unionid === 'string' &&
    idText.test(unionid) &&
    typeof platform === 'string' &&
    isMemberName(platform);
  if (!isValid) throw refuse('incorrectType', 'unionid and platform in authData must be texts.');
  return { platform: unionMember(platform), uid: unionid };
}

const unionMember = (platform: string): string => `_${platform}_unionid`;

/** True if an entry is the main account of its UnionID (protocol/users.md#unionid). */
const isMain = ({ main_account: main }: JsonObject): boolean => main === true || main === 'true';

/** Third-party accounts and UnionIDs of entries. */
interface Identities {
  /** Ids of the accounts. They take precedence over UnionIDs. */
  own: Identity[];
  /** UnionIDs of all entries. A login searches for a user with any of them. */
  unions: Identity[];
  /** UnionIDs of main accounts. The user can be found by them. */
  claims: Identity[];
  /** UnionIDs of entries that do not say whether they are the main account. */
  undecided: Identity[];
}

/** Returns the identities of all entries. */
export function identitiesOf(authData: AuthData): Identities {
  const entries = Object.entries(authData);
  const of = (some: JsonObject[]) => [
    ...new Map(
      some.flatMap((entry) => {
        const union = unionOf(entry);
        return union ? [[`${union.platform} ${union.uid}`, union] as const] : [];
      }),
    ).values(),
  ];
  const values = entries.map(([, entry]) => entry);
  return {
    own: entries.map(([platform, entry]) => identityOf(platform, entry)),
    unions: of(values),
    claims: of(values.filter(isMain)),
    undecided: of(values.filter(({ main_account: main }) => main === undefined)),
  };
}

/**
 * Returns the members `_<platform>_unionid`, which replies contain in `authData` and next to it
 * (protocol/users.md#unionid).
 */
export function unionMembers(authData: AuthData): Record<string, JsonObject> {
  const { claims } = identitiesOf(authData);
  return Object.fromEntries(claims.map(({ platform, uid }) => [platform, { uid }]));
}

/**
 * Applies changes to the platforms of a user. Linking a real platform ends the anonymous state
 * (protocol/users.md#anonymous-users). Throws error 116 if there are too many platforms.
 */
export function changedAuthData(
  current: AuthData | null,
  changes: CheckedAuthData,
): AuthData | null {
  if (changes.size === 0) return current;
  const platforms = new Map(Object.entries(current ?? {}));
  for (const [platform, entry] of changes) {
    if (entry === null) platforms.delete(platform);
    else platforms.set(platform, merged(platform, platforms.get(platform), entry));
  }
  if (platforms.size > 1) platforms.delete(anonymous);
  if (platforms.size > maxPlatforms)
    throw refuse('tooLarge', `authData has at most ${maxPlatforms} platforms.`);
  return current === null && platforms.size === 0 ? null : Object.fromEntries(platforms);
}

/**
 * Merges a new entry into the stored entry of the same account. A login without the UnionID does
 * not remove it.
 */
function merged(platform: string, stored: JsonObject | undefined, entry: JsonObject): JsonObject {
  const isSame = stored && identityOf(platform, stored).uid === identityOf(platform, entry).uid;
  return isSame ? { ...stored, ...entry } : entry;
}

/** Encrypts and decrypts values with CARILLON_SECRET (`Vault` in shared/crypto.ts). */
export interface Sealer {
  seal(value: unknown, context: string): Buffer;
  open(sealed: Buffer, context: string): unknown;
}

/**
 * Members of an entry that are shown and stored unencrypted: the account, the validity of its
 * token, and its public profile. All other members count as secrets, because platforms choose the
 * names of their secrets freely, such as `mac_key`, `serverAuthCode`, `kid` and `signature`
 * (protocol/users.md#members-that-are-shown).
 */
export const visibleMembers = [
  ...['uid', 'openid', 'id', 'unionid', 'platform', 'main_account'],
  ...['expires_in', 'expiration_in', 'expires_at', 'expires', 'scope', 'token_type'],
  ...['name', 'nick', 'nickname', 'username', 'screen_name', 'display_name', 'login'],
  ...['avatar', 'avatar_url', 'picture', 'headimgurl', 'profile_image_url', 'figureurl'],
  ...['gender', 'sex', 'country', 'province', 'city', 'language', 'locale'],
];

/** Normalises a name, so that `expires_in`, `expiresIn` and `expires-in` are equal. */
const foldedName = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '');
const harmlessNames = new Set(visibleMembers.map(foldedName));

/** True if a value contains no members, which could be secrets. */
const isPlain = (value: Json): boolean =>
  typeof value !== 'object' || value === null || (Array.isArray(value) && value.every(isText));
const isText = (value: Json): boolean => typeof value === 'string';

const isSecret = (name: string, value: Json): boolean =>
  !harmlessNames.has(foldedName(name)) || !isPlain(value);

const mapEntries = (
  authData: AuthData,
  change: (platform: string, entry: JsonObject) => JsonObject,
): AuthData =>
  Object.fromEntries(Object.entries(authData).map(([name, entry]) => [name, change(name, entry)]));

/** Returns the platforms for a reply to a client, with visible members only. */
export const visibleAuthData = (authData: AuthData): AuthData =>
  mapEntries(authData, (_platform, entry) => visibleEntry(entry));

/** Like `visibleAuthData`, for one platform. */
function visibleEntry(entry: JsonObject): JsonObject {
  const harmless = Object.entries(entry).filter(
    ([name, value]) => name !== sealedMember && !isSecret(name, value),
  );
  return Object.fromEntries(harmless);
}

/**
 * Returns the platforms in the form of the database. All members except the visible members are
 * encrypted for this app and account.
 */
export const sealedAuthData = (sealer: Sealer, appId: string, authData: AuthData): AuthData =>
  mapEntries(authData, (platform, entry) =>
    sealEntry(sealer, contextOf(appId, platform, entry), entry),
  );

/**
 * Returns stored platforms with their secrets decrypted. Secrets are left out if no key of
 * CARILLON_SECRET decrypts them.
 */
export const openedAuthData = (sealer: Sealer, appId: string, authData: AuthData): AuthData =>
  mapEntries(authData, (platform, entry) => openedEntry(sealer, appId, { platform, entry }));

/** Like `openedAuthData`, for one platform. */
export function openedEntry(
  sealer: Sealer,
  appId: string,
  { platform, entry }: { platform: string; entry: JsonObject },
): JsonObject {
  const { [sealedMember]: sealed, ...rest } = entry;
  return { ...secretsIn(sealer, contextOf(appId, platform, entry), sealed), ...rest };
}

/**
 * Adds the members that the caller sent in its entries to a document, because a reply returns the
 * entries of the call (protocol/users.md#members-that-are-shown). `stored` contains the entries
 * that the call wrote. A member that a hook or the platform replaced is not returned.
 */
export function withSentEntries(
  document: JsonObject,
  sent: AuthDataChanges,
  stored: AuthDataChanges,
): JsonObject {
  const { authData } = document;
  if (!isJsonObject(authData)) return document;
  const entries = Object.entries(authData).map(([platform, entry]): [string, Json] => {
    const own = sent.get(platform);
    const written = stored.get(platform);
    if (!own || !written || !isJsonObject(entry)) return [platform, entry];
    const kept = Object.entries(own).filter(
      ([name, value]) =>
        Object.hasOwn(written, name) && stableText(written[name] ?? null) === stableText(value),
    );
    return [platform, { ...entry, ...Object.fromEntries(kept) }];
  });
  return { ...document, authData: Object.fromEntries(entries) };
}

const contextOf = (appId: string, platform: string, entry: JsonObject): string =>
  sealContexts.platform(appId, platform, String(identityOf(platform, entry).uid));

/** Encrypts the secrets of an entry. New secrets replace stored secrets with the same name. */
function sealEntry(sealer: Sealer, context: string, entry: JsonObject): JsonObject {
  const { [sealedMember]: sealed, ...rest } = entry;
  const members = Object.entries(rest);
  const fresh = members.filter(([name, value]) => isSecret(name, value));
  if (fresh.length === 0) return entry;
  const secrets = { ...secretsIn(sealer, context, sealed), ...Object.fromEntries(fresh) };
  return {
    ...Object.fromEntries(members.filter(([name, value]) => !isSecret(name, value))),
    [sealedMember]: sealer.seal(secrets, context).toString('base64'),
  };
}

/**
 * Encrypts the secrets of each platform with the first key. Returns the encrypted members by
 * platform. Members that no key decrypts are left out.
 */
export function resealedMembers(
  sealer: Sealer,
  appId: string,
  authData: AuthData,
): Record<string, string> {
  const renewed: Record<string, string> = {};
  for (const [platform, entry] of Object.entries(authData)) {
    const sealed = entry[sealedMember];
    if (typeof sealed !== 'string') continue;
    try {
      const context = contextOf(appId, platform, entry);
      const secrets = sealer.open(Buffer.from(sealed, 'base64'), context);
      renewed[platform] = sealer.seal(secrets, context).toString('base64');
    } catch {
      // The key was removed, or the account id is malformed. The value stays unchanged.
    }
  }
  return renewed;
}

function secretsIn(sealer: Sealer, context: string, sealed: Json | undefined): JsonObject {
  if (typeof sealed !== 'string') return {};
  try {
    const secrets = sealer.open(Buffer.from(sealed, 'base64'), context);
    return isJsonObject(secrets) ? secrets : {};
  } catch {
    // The key was removed. The next login stores new tokens.
    return {};
  }
}
