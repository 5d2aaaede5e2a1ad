import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../json.ts';

/**
 * Members of credentials that are shown: ids, which people compare with the vendor's console, and
 * settings. Applies at any depth.
 */
const visibleMembers = new Set([
  ...[
    'auth',
    'teamId',
    'keyId',
    'topic',
    'topics',
    'environment',
    'packageName',
    'region',
    'badgeClass',
  ],
  ...['transport', 'ratePerSecond', 'appId', 'clientId', 'intentHost', 'endpoint', 'authEndpoint'],
  'managementEndpoint',
  ...['project_id', 'client_email', 'private_key_id', 'token_uri', 'key_id', 'sub_account'],
]);

/** Members that contain a URL, possibly with user and password. */
const urlMembers = new Set(['endpoint', 'authEndpoint', 'managementEndpoint', 'token_uri']);

/** Digest of a secret. It shows whether two secrets differ without showing them. */
export interface Fingerprint {
  sha256: string;
}

/** Credentials in the form that operators see. */
export interface CredentialView {
  /** Ids and settings. */
  members: JsonObject;
  /**
   * Fingerprints of all other members by name. Members of a nested object have the name
   * `object.member`.
   */
  secrets: Record<string, Fingerprint>;
}

/** Splits credentials into members that operators may see and fingerprints of the others. */
export function viewCredentials(credentials: JsonObject): CredentialView {
  const members: JsonObject = {};
  const secrets: Record<string, Fingerprint> = {};
  for (const [name, value] of Object.entries(credentials)) {
    if (isJsonObject(value)) {
      const inner = viewCredentials(value);
      if (Object.keys(inner.members).length > 0) members[name] = inner.members;
      for (const [path, print] of Object.entries(inner.secrets)) secrets[`${name}.${path}`] = print;
    } else if (typeof value === 'string' && urlMembers.has(name))
      members[name] = withoutUser(value);
    else if (visibleMembers.has(name)) members[name] = value;
    else if (value !== null) secrets[name] = { sha256: sha256Of(String(value)) };
  }
  return { members, secrets };
}

const sha256Of = (text: string): string => createHash('sha256').update(text).digest('hex');

function withoutUser(text: string): string {
  if (!URL.canParse(text)) return '';
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`;
}
