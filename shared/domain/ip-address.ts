import { isIP, isIPv4, isIPv6 } from 'node:net';

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
