/**
 * Decides which addresses are public, and which private addresses CARILLON_PRIVATE_HOSTS allows.
 * `shared/http/outbound-addresses.ts` checks each connection.
 */
import { BlockList, isIP, isIPv4 } from 'node:net';
import { embeddedIpv4 } from '../domain/addresses.ts';

/** Special-purpose blocks of IPv4 that are not public (IANA registry, RFC 6890). */
const privateIpv4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];
/**
 * Blocks in 2000::/3 that are not public (RFC 6890, RFC 9637). IPv6 addresses outside 2000::/3 are
 * never public.
 */
const privateIpv6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];
/**
 * Addresses that are never allowed: cloud metadata services, which give out the credentials of the
 * machine, and all link-local addresses, which most of these services use.
 */
const metadata: readonly (readonly [string, number])[] = [
  ['169.254.0.0', 16],
  ['100.100.100.200', 32],
  ['168.63.129.16', 32],
  ['192.0.0.192', 32],
  ['fe80::', 10],
  ['fd00:ec2::', 32],
  ['fd20:ce::', 32],
];

const blockListOf = (subnets: readonly (readonly [string, number])[]): BlockList => {
  const list = new BlockList();
  for (const [address, bits] of subnets)
    list.addSubnet(address, bits, isIPv4(address) ? 'ipv4' : 'ipv6');
  return list;
};

const privateBlocks = blockListOf([...privateIpv4, ...privateIpv6]);
const publicIpv6 = blockListOf([['2000::', 3]]);
const metadataBlocks = blockListOf(metadata);

const includes = (list: BlockList, address: string): boolean =>
  list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');

/**
 * Loopback addresses. `npm start`, benchmarks and tests allow them, because their gateways run on
 * the same machine.
 */
export const loopbackNetworks = '127.0.0.0/8,::1/128';

/**
 * Networks, addresses and names that are allowed although they are private
 * (CARILLON_PRIVATE_HOSTS).
 */
export class PrivateHosts {
  readonly #networks = new BlockList();
  readonly #names = new Set<string>();

  /**
   * `text` contains CIDR networks, addresses and host names, separated by commas. Throws a
   * RangeError with the position of the first invalid entry.
   */
  constructor(text: string) {
    for (const [index, entry] of text.split(',').entries())
      if (entry.trim() !== '' && !this.#add(entry.trim()))
        throw new RangeError(
          `expected networks (10.0.0.0/8), addresses and host names, separated by commas; entry ${index + 1} is not one of these`,
        );
  }

  #add(entry: string): boolean {
    const [, address = '', bits] = /^\[?([^[\]/]+)\]?(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
    const version = isIP(address);
    if (version === 0) {
      const isName =
        bits === undefined &&
        /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i.test(
          entry,
        );
      // A name that ends with a number is an address in another form.
      if (!isName || /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(entry)) return false;
      this.#names.add(canonicalName(entry));
      return true;
    }
    const width = version === 4 ? 32 : 128;
    if (Number(bits ?? width) > width) return false;
    this.#networks.addSubnet(address, Number(bits ?? width), version === 4 ? 'ipv4' : 'ipv6');
    return true;
  }

  /** True if a connection may go to `address`. `name` is the host name that resolved to it. */
  allows(address: string, name = address): boolean {
    const real = embeddedIpv4(address) ?? address;
    if (includes(metadataBlocks, real)) return false;
    return isPublic(real) || this.#names.has(canonicalName(name)) || includes(this.#networks, real);
  }

  /** True if `address` is private and in the list, or if `name` is in the list. */
  lists(address: string, name = address): boolean {
    if (this.#names.has(canonicalName(name))) return true;
    const real = embeddedIpv4(address) ?? address;
    return isIP(real) !== 0 && includes(this.#networks, real) && !includes(metadataBlocks, real);
  }
}

const canonicalName = (name: string): string => name.toLowerCase().replace(/\.$/, '');

function isPublic(address: string): boolean {
  if (includes(privateBlocks, address)) return false;
  return isIPv4(address) || includes(publicIpv6, address);
}
