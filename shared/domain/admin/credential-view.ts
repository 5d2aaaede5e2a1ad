import { createHash } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../json.ts';

/**
 * Members of credentials that people compare with the vendor's page: ids and settings, at any
 * depth.
 */
const shownMembers = new Set([
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
  ...['project_id', 'client_email', 'private_key_id', 'token_uri', 'key_id', 'sub_account'],
]);

/** Members that hold a URL, possibly with a user and a password. */
const urlMembers = new Set(['endpoint', 'authEndpoint', 'token_uri']);

/** Digest that tells two secrets apart without showing them. */
export interface Fingerprint {
  sha256: string;
}

/** Credentials as operators see them. */
export interface CredentialView {
  /** Ids and settings. */
  members: JsonObject;
  /** All others by name, those of a nested object as `object.member`. */
  secrets: Record<string, Fingerprint>;
}

/** Separates credentials into what operators may read and fingerprints of the rest. */
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
    else if (shownMembers.has(name)) members[name] = value;
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
