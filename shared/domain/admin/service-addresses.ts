import { isJsonObject } from '../json.ts';

/**
 * Members of profiles and of an app's options that hold a URL which the service connects to. Only
 * owners set them, the audit shows their hosts, and each connection checks the address
 * (shared/http/outbound-addresses.ts).
 */
const addressMembers = new Set([
  'endpoint',
  'authEndpoint',
  'proxy',
  'token_uri',
  'jwksUrl',
  'functionsUrl',
  'functionsStagingUrl',
]);

/** Tells whether a member of this name holds a URL that the service connects to. */
export const isAddressMember = (name: string): boolean => addressMembers.has(name);

/**
 * Returns the URLs within settings that the service connects to, by the path of their member:
 * `serviceAccount.token_uri`.
 */
export function addressesIn(
  settings: Readonly<Record<string, unknown>>,
  path = '',
): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value === 'string' && isAddressMember(name)) found.set(`${path}${name}`, value);
    else if (isJsonObject(value))
      for (const [inner, url] of addressesIn(value, `${path}${name}.`)) found.set(inner, url);
  }
  return found;
}

/**
 * Returns scheme, host and port of a URL, without user, password, path and query; undefined for
 * another text.
 */
export function originOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

/** Checks whether devices can use this URL: it needs TLS and a DNS name. */
export function isPublicAddress(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' && /[a-z]$/i.test(hostname) && !/(^|\.)localhost$/i.test(hostname);
}
