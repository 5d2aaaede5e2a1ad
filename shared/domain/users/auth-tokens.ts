import { sealContexts } from '../apps/seal-contexts.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { type AuthData, identityOf, sealedMember } from './auth-data.ts';

/** Encrypts and decrypts values with CARILLON_SECRET (`Vault` of shared/crypto.ts). */
export interface Sealer {
  seal(value: unknown, context: string): Buffer;
  open(sealed: Buffer, context: string): unknown;
}

/** Names of members with secrets of an account at its platform. */
const secretName = /token|secret|password|session_?key|credential|assertion|^(auth(orization)?_?)?code$/i;

/** Tells whether a member contains a secret at any depth. Values are at most 32 levels deep (typed-values.ts). */
const isSecret = (name: string, value: Json): boolean => secretName.test(name) || holdsSecret(value);

function holdsSecret(value: Json): boolean {
  if (Array.isArray(value)) return value.some(holdsSecret);
  return isJsonObject(value) && Object.entries(value).some(([name, inner]) => isSecret(name, inner));
}

const mapEntries = (
  authData: AuthData,
  change: (platform: string, entry: JsonObject) => JsonObject,
): AuthData =>
  Object.fromEntries(Object.entries(authData).map(([name, entry]) => [name, change(name, entry)]));

/** Returns the platforms as replies to clients show them: without tokens and other secrets. */
export const shownAuthData = (authData: AuthData): AuthData =>
  mapEntries(authData, (_platform, entry) => shownEntry(entry));

/** As `shownAuthData`, for one platform. */
export function shownEntry(entry: JsonObject): JsonObject {
  const shown = Object.entries(entry).filter(
    ([name, value]) => name !== sealedMember && !isSecret(name, value),
  );
  return Object.fromEntries(shown);
}

/** Returns the platforms as the database stores them: secrets of each entry encrypted for this app and account. */
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
