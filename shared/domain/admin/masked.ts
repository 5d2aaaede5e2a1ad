import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { isAddressMember, originOf } from './service-addresses.ts';

/** Text in place of a secret. */
export const maskText = '•••';

/**
 * Replaces every text, number and flag of an object by dots, at any depth: the names of members
 * stay. Of a URL that the service connects to, the origin stays, so that the audit shows where
 * requests of the service go.
 */
export function masked(value: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      (isAddressMember(name) && typeof member === 'string' && originOf(member)) || maskedValue(member),
    ]),
  );
}

/** Members of credentials that are no secrets: ids that people compare with the vendor's page, and settings. */
const shownCredentials = new Set([
  ...['auth', 'teamId', 'keyId', 'topic', 'topics', 'environment', 'packageName', 'region'],
  ...['transport', 'ratePerSecond'],
]);

/** Returns credentials with dots in place of all secrets. */
export const maskedCredentials = (credentials: JsonObject): JsonObject => ({
  ...masked(credentials),
  ...Object.fromEntries(Object.entries(credentials).filter(([name]) => shownCredentials.has(name))),
});

function maskedValue(value: unknown): Json {
  if (value === null || value === undefined) return null;
  if (Array.isArray(value)) return value.map(maskedValue);
  return isJsonObject(value) ? masked(value) : maskText;
}
