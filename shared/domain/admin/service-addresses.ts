import { isJsonObject } from '../json.ts';

/**
 * Members of profiles and app options that contain a URL which the service connects to. Only owners
 * may set them, and the audit shows their hosts. Each connection checks the address
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

/** True if a member contains a URL that the service connects to. */
export const isAddressMember = (name: string): boolean => addressMembers.has(name);

/**
 * Returns the URLs in settings that the service connects to, by the path of their member, such as
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

/** Returns scheme, host and port of a URL. Returns undefined if the text is not a URL. */
export function originOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

/** True if devices can use this URL: it has TLS and a DNS name. */
export function isPublicAddress(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' && /[a-z]$/i.test(hostname) && !/(^|\.)localhost$/i.test(hostname);
}
