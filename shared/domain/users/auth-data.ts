import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { isOperation } from '../objects/operations.ts';
import { canonicalValue, isMemberName } from '../objects/typed-values.ts';

/** Authorization data by platform (protocol/users.md#third-party-accounts). */
export type AuthData = Record<string, JsonObject>;

/** The platform of users who have not said yet who they are. */
export const anonymous = 'anonymous';

/** Holds the sealed secrets of a stored entry, in base64 (auth-tokens.ts). */
export const sealedMember = '_sealed';

/** A third-party account, as `user_identity` holds it. */
export interface Identity {
  platform: string;
  uid: string;
}

/** What a body does to the platforms of a user: an entry is linked, null is unlinked. */
export type AuthDataChanges = ReadonlyMap<string, JsonObject | null>;

/** Platforms that call the user's id `openid`; the others call it `uid` (protocol/users.md#third-party-accounts). */
const openidPlatforms = new Set(['weixin', 'qq']);

const maxPlatforms = 20;
const maxEntryBytes = 16 * 1024;
const idText = /^[^\s\p{Cc}]{1,255}$/u;
/** Whoever guesses the id of an anonymous user is that user: no clients in the field make shorter ones. */
const anonymousId = /^[A-Za-z0-9-]{16,64}$/;

/**
 * Reads `authData`. Members that begin with `_` are what we show beside the platforms, and are left out. Throws
 * 250 without an id, 105, 111 and 116 for what cannot be stored. Whether a token is there is `requireToken`'s question.
 */
export function readAuthData(value: unknown): AuthDataChanges {
  if (!isJsonObject(value)) throw refuse('incorrectType', 'authData must be a dictionary.');
  const entries = Object.entries(value).filter(([name]) => !name.startsWith('_'));
  if (entries.length > maxPlatforms)
    throw refuse('tooLarge', `authData has at most ${maxPlatforms} platforms.`);
  return new Map(entries.map(([platform, entry]) => [platform, readChange(platform, entry)]));
}

/** An entry, or null for what takes the platform away: null (Python and PHP SDKs) or a deletion. Throws as `readEntry`. */
export function readChange(platform: string, value: unknown): JsonObject | null {
  if (!isMemberName(platform)) throw refuse('invalidKeyName');
  const isDeletion = isOperation(value) && value.__op === 'Delete';
  return value === null || isDeletion ? null : readEntry(platform, value);
}

/** Reads one platform's entry. Throws as `readAuthData`. */
export function readEntry(platform: string, value: unknown): JsonObject {
  if (!isMemberName(platform)) throw refuse('invalidKeyName');
  if (!isJsonObject(value) || isOperation(value)) throw refuse('linkedIdMissing');
  const entry = withoutSeal(canonicalValue(value));
  if (!isJsonObject(entry) || Object.hasOwn(entry, '__type')) throw refuse('linkedIdMissing');
  if (Buffer.byteLength(JSON.stringify(entry)) > maxEntryBytes)
    throw refuse('tooLarge', `An entry of authData is at most ${maxEntryBytes} bytes.`);
  identityOf(platform, entry);
  checkTokens(entry);
  unionOf(entry);
  return entry;
}

/** An entry that comes from outside, without what only the service writes into it. */
export function withoutSeal(value: Json): Json {
  if (!isJsonObject(value) || !Object.hasOwn(value, sealedMember)) return value;
  const { [sealedMember]: _, ...entry } = value;
  return entry;
}

/** The account that an entry stands for. Throws 250 when it names none, 111 when the id is no text. */
export function identityOf(platform: string, entry: JsonObject): Identity {
  const uid = uidOf(platform, entry);
  if (uid === undefined || uid === null || uid === '') throw refuse('linkedIdMissing');
  if (typeof uid !== 'string') throw refuse('incorrectType', 'The id in authData must be a text.');
  const form = platform === anonymous ? anonymousId : idText;
  if (!form.test(uid)) throw refuse('linkedIdMissing', 'The id in authData is malformed.');
  return { platform, uid };
}

/** Samples in the field name the id of custom platforms `openid` too (protocol/users.md#third-party-accounts). */
function uidOf(platform: string, entry: JsonObject): Json | undefined {
  const own = (name: string) => (Object.hasOwn(entry, name) ? entry[name] : undefined);
  if (platform === anonymous) return own('id');
  return openidPlatforms.has(platform) ? (own('openid') ?? own('uid')) : (own('uid') ?? own('openid'));
}

/** Throws 111 for a token that is no text. */
function checkTokens(entry: JsonObject): void {
  for (const name of ['access_token', 'identity_token', 'code', 'refresh_token'])
    if (Object.hasOwn(entry, name) && entry[name] !== null && typeof entry[name] !== 'string')
      throw refuse('incorrectType', `${name} in authData must be a text.`);
}

/**
 * Every platform but the identity-token one comes with an access token (protocol/users.md#third-party-accounts); lifetimes differ
 * in name and type from client to client and mean nothing to us. Throws 251, or 252 for weixin.
 */
export function requireToken(platform: string, entry: JsonObject): void {
  const isTokenNeeded =
    platform !== anonymous && !Object.hasOwn(entry, 'identity_token') && !platform.startsWith('lc_');
  if (isTokenNeeded && !entry.access_token)
    throw refuse(platform === 'weixin' ? 'invalidWeixinSession' : 'invalidLinkedSession');
}

/**
 * The UnionID of an entry as an identity (protocol/users.md#unionid), or undefined. `main_account` comes as a text
 * or as a boolean. Throws 111 for wrong types.
 */
export function unionOf(entry: JsonObject): Identity | undefined {
  const { unionid, platform, main_account: isMain } = entry;
  if (isMain !== undefined && ![true, false, 'true', 'false'].some((word) => word === isMain))
    throw refuse('incorrectType', 'main_account in authData must be true or false.');
  if (unionid === undefined || platform === undefined) return undefined;
  const isSound =
    typeof unionid === 'string' &&
    idText.test(unionid) &&
    typeof platform === 'string' &&
    isMemberName(platform);
  if (!isSound) throw refuse('incorrectType', 'unionid and platform in authData must be texts.');
  return { platform: unionMember(platform), uid: unionid };
}

const unionMember = (platform: string): string => `_${platform}_unionid`;

/** The identities of all entries: those by which a user is found first, and the UnionIDs. */
export function identitiesOf(authData: AuthData): { own: Identity[]; unions: Identity[] } {
  const entries = Object.entries(authData);
  const unions = new Map(
    entries.flatMap(([, entry]) => {
      const union = unionOf(entry);
      return union ? [[`${union.platform} ${union.uid}`, union]] : [];
    }),
  );
  return {
    own: entries.map(([platform, entry]) => identityOf(platform, entry)),
    unions: [...unions.values()],
  };
}

/** `_<platform>_unionid` members as replies show them, in `authData` and beside it (protocol/users.md#unionid). */
export function unionMembers(authData: AuthData): Record<string, JsonObject> {
  const { unions } = identitiesOf(authData);
  return Object.fromEntries(unions.map(({ platform, uid }) => [platform, { uid }]));
}

/**
 * The platforms after a change. Who has a real platform is anonymous no longer (protocol/users.md#anonymous-users). Throws 116 when
 * there are too many.
 */
export function changedAuthData(current: AuthData | null, changes: AuthDataChanges): AuthData | null {
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

/** Of the same account what was not sent anew stays: a login without the UnionID does not take it away. */
function merged(platform: string, stored: JsonObject | undefined, entry: JsonObject): JsonObject {
  const isSame = stored && identityOf(platform, stored).uid === identityOf(platform, entry).uid;
  return isSame ? { ...stored, ...entry } : entry;
}
