import { isIP, isIPv4, isIPv6 } from 'node:net';
import { isJsonObject } from './json.ts';

/** URLs and IP addresses: checks, canonical forms, and members of settings that contain them. */

/** True if a text is a base URL: it may have a path, but no user, query or fragment. */
export function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { search, hash } = new URL(text);
  return hasNoUser(text) && `${search}${hash}` === '';
}

/** True if a URL contains no user. Most calls would silently ignore user and password. */
export function hasNoUser(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return `${username}${password}` === '';
}

/**
 * Returns the value for Basic authentication (RFC 7617) from user and password of a URL. Returns
 * undefined if the URL contains neither. Accepts all URLs that `URL` accepts: a percent sign that does not start an
 * escape stays, and an escape may be any byte.
 */
export function basicAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const bytes = Buffer.from(
    `${username}:${password}`.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
    'latin1',
  );
  return `Basic ${bytes.toString('base64')}`;
}

/**
 * Returns an IP address in its canonical form: IPv4 with dots, and IPv6 as in the URL standard
 * (lower case, shortest form). Accepts the forms that proxies write into `X-Forwarded-For`: with a
 * port, brackets, a zone, or as IPv4-mapped IPv6 (RFC 4291 2.5.5.2). Returns undefined for other
 * texts.
 */
export function ipAddressIn(text: string): string | undefined {
  const [, bracketed, v4, bare] =
    /^(?:\[([^\]]+)\](?::\d{1,5})?|(\d+\.\d+\.\d+\.\d+)(?::\d{1,5})?|([0-9a-f:.]+(?:%[\w.-]+)?))$/i.exec(
      text,
    ) ?? [];
  const address = (v4 ?? bracketed ?? bare)?.split('%')[0] ?? '';
  if (isIPv4(address)) return address;
  return isIPv6(address) ? (embeddedIpv4(address) ?? canonicalIpv6(address)) : undefined;
}

/**
 * Returns the form of the URL standard: hexadecimal groups without leading zeros, and `::` for the
 * longest run of zeros.
 */
const canonicalIpv6 = (address: string): string =>
  new URL(`http://[${address}]`).hostname.slice(1, -1);

/**
 * Returns the IPv4 address in an IPv4-mapped (RFC 4291) or NAT64 (RFC 6052) address. Packets go to
 * this address.
 */
export function embeddedIpv4(address: string): string | undefined {
  if (!isIPv6(address) || address.includes('%')) return undefined;
  const [, high, low] =
    /^(?:::ffff|64:ff9b:):(?:([0-9a-f]{1,4}):)?([0-9a-f]{1,4})$/.exec(canonicalIpv6(address)) ?? [];
  if (low === undefined) return undefined;
  const bits = Number.parseInt(high ?? '0', 16) * 65_536 + Number.parseInt(low, 16);
  return [24, 16, 8, 0].map((shift) => Math.floor(bits / 2 ** shift) % 256).join('.');
}

/** True if an address, in any form, is a loopback address. */
export const isLoopback = (address: string): boolean =>
  /^(127\.|::1$)/.test(ipAddressIn(address) ?? '');

/**
 * Returns the key under which calls from an address are counted. It is the address itself for IPv4,
 * and the /64 prefix for IPv6, because a single customer has 2^64 addresses (RFC 6177). Takes an
 * address in canonical form (`ipAddressIn`).
 */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = canonicalIpv6(address).split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  return [...front, ...Array<string>(zeros).fill('0'), ...back].slice(0, 4).join(':');
}

/**
 * Members of profiles and app options that contain a URL which the service connects to. Only owners
 * may set them, and the audit shows their hosts. Each connection checks the address
 * (shared/http/outbound-addresses.ts).
 */
const addressMembers = new Set([
  'endpoint',
  'authEndpoint',
  'managementEndpoint',
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
