import { sealContexts } from '../apps/seal-contexts.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { stableText } from '../objects/operations.ts';
import { type AuthData, type AuthDataChanges, identityOf, sealedMember } from './auth-data.ts';

/** Encrypts and decrypts values with CARILLON_SECRET (`Vault` of shared/crypto.ts). */
export interface Sealer {
  seal(value: unknown, context: string): Buffer;
  open(sealed: Buffer, context: string): unknown;
}

/**
 * Members of an entry that are shown and stored in clear: the account, how long its token is valid,
 * and its public profile. Every other member is a secret, because platforms name their secrets
 * freely: `mac_key`, `serverAuthCode`, `kid`, `signature`
 * (protocol/users.md#members-that-are-shown).
 */
export const shownMembers = [
  ...['uid', 'openid', 'id', 'unionid', 'platform', 'main_account'],
  ...['expires_in', 'expiration_in', 'expires_at', 'expires', 'scope', 'token_type'],
  ...['name', 'nick', 'nickname', 'username', 'screen_name', 'display_name', 'login'],
  ...['avatar', 'avatar_url', 'picture', 'headimgurl', 'profile_image_url', 'figureurl'],
  ...['gender', 'sex', 'country', 'province', 'city', 'language', 'locale'],
];

/** Spellings of a name compare as one: `expires_in`, `expiresIn`, `expires-in`. */
const foldedName = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '');
const harmlessNames = new Set(shownMembers.map(foldedName));

/** Tells whether a value has no members of its own, which could be secrets. */
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

/** Returns the platforms as replies to clients show them: with harmless members only. */
export const shownAuthData = (authData: AuthData): AuthData =>
  mapEntries(authData, (_platform, entry) => shownEntry(entry));

/** As `shownAuthData`, for one platform. */
export function shownEntry(entry: JsonObject): JsonObject {
  const shown = Object.entries(entry).filter(
    ([name, value]) => name !== sealedMember && !isSecret(name, value),
  );
  return Object.fromEntries(shown);
}

/**
 * Returns the platforms as the database stores them: all but the harmless members of each entry are
 * encrypted for this app and account.
 */
export const sealedAuthData = (sealer: Sealer, appId: string, authData: AuthData): AuthData =>
  mapEntries(authData, (platform, entry) => sealEntry(sealer, contextOf(appId, platform, entry), entry));

/** Returns stored platforms with their secrets, except those that no key of CARILLON_SECRET decrypts. */
export const openedAuthData = (sealer: Sealer, appId: string, authData: AuthData): AuthData =>
  mapEntries(authData, (platform, entry) => openedEntry(sealer, appId, { platform, entry }));

/** As `openedAuthData`, for one platform. */
export function openedEntry(
  sealer: Sealer,
  appId: string,
  { platform, entry }: { platform: string; entry: JsonObject },
): JsonObject {
  const { [sealedMember]: sealed, ...rest } = entry;
  return { ...secretsIn(sealer, contextOf(appId, platform, entry), sealed), ...rest };
}

/**
 * Returns a document with the members that the caller sent of its platforms: the reply to a call
 * that carries an entry gives it back (protocol/users.md#members-that-are-shown). `stored` are the
 * entries that the call wrote. A member that a hook or the platform replaced is not given back.
 */
export function withSentEntries(
  document: JsonObject,
  sent: AuthDataChanges,
  stored: AuthDataChanges,
): JsonObject {
  const { authData } = document;
  if (!isJsonObject(authData)) return document;
  const entries = Object.entries(authData).map(([platform, shown]): [string, Json] => {
    const own = sent.get(platform);
    const written = stored.get(platform);
    if (!own || !written || !isJsonObject(shown)) return [platform, shown];
    const kept = Object.entries(own).filter(
      ([name, value]) =>
        Object.hasOwn(written, name) && stableText(written[name] ?? null) === stableText(value),
    );
    return [platform, { ...shown, ...Object.fromEntries(kept) }];
  });
  return { ...document, authData: Object.fromEntries(entries) };
}

const contextOf = (appId: string, platform: string, entry: JsonObject): string =>
  sealContexts.platform(appId, platform, String(identityOf(platform, entry).uid));

/** Encrypts the secrets of an entry. New secrets replace stored ones of the same name. */
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
 * Encrypts the secrets of each platform under the sealer's first key. Returns the encrypted members by platform, without
 * those that no key decrypts.
 */
export function resealedMembers(sealer: Sealer, appId: string, authData: AuthData): Record<string, string> {
  const renewed: Record<string, string> = {};
  for (const [platform, entry] of Object.entries(authData)) {
    const sealed = entry[sealedMember];
    if (typeof sealed !== 'string') continue;
    try {
      const context = contextOf(appId, platform, entry);
      const secrets = sealer.open(Buffer.from(sealed, 'base64'), context);
      renewed[platform] = sealer.seal(secrets, context).toString('base64');
    } catch {
      // The key was removed, or the id of the account is malformed: the value stays as it is.
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
    // The key was removed; the next login brings new tokens.
    return {};
  }
}
