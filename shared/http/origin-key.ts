import { isIPv6 } from 'node:net';

/**
 * Returns the key under which connections of an address are counted. Of IPv6 that is the /64 prefix: a single
 * customer has 2^64 addresses (RFC 6177).
 */
export function originKey(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? 0 : tail.split(':').length;
  const zeros = tail === undefined ? 0 : 8 - front.length - back;
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...(tail?.split(':') ?? [])];
  return groups.slice(0, 4).join(':');
}
