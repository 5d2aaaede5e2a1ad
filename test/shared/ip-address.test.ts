import { describe, expect, test } from 'vitest';
import { embeddedIpv4, ipAddressIn, networkOf } from '../../shared/domain/addresses.ts';

describe('the address in a text', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['203.0.113.9:51820', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:cb00:7109', '203.0.113.9'],
    ['[::ffff:203.0.113.9]:443', '203.0.113.9'],
    ['2001:db8::1', '2001:db8::1'],
    ['2001:0DB8:0:0::0001', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:51820', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::1', '::1'],
  ])('%s is %s', (text, address) => expect(ipAddressIn(text)).toBe(address));

  test.each([
    ...[
      '',
      ' ',
      'unknown',
      '-',
      '_hidden',
      'localhost',
      '203.0.113',
      '203.0.113.256',
      '1.2.3.4.5',
      '203.0.113.9:',
      '203.0.113.9:x',
    ],
    ...[
      '203.0.113.9:123456',
      '[203.0.113.9',
      '2001:db8::1]',
      '[2001:db8::1]x',
      '2001:db8:::1',
      '1:2:3:4:5:6:7:8:9',
      '::g',
      '0x7f.1',
    ],
    ...[
      '203.0.113.9 ',
      '203.0.113.9,203.0.113.8',
      '203.0.113.9\0',
      'http://203.0.113.9',
      '"203.0.113.9"',
      '1'.repeat(300),
    ],
  ])('%j is not an address', (text) => expect(ipAddressIn(text)).toBeUndefined());
});

test.each([
  ['203.0.113.9', '203.0.113.9'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::', '2001:db8:1:2'],
  ['2001:db8:0:2:3:4:5:6', '2001:db8:0:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['::1', '0:0:0:0'],
])('%s counts as %s', (address, network) => expect(networkOf(address)).toBe(network));

test('the IPv4 address inside an IPv6 address is found in its two forms', () => {
  expect(
    ['::ffff:10.0.0.1', '64:ff9b::a00:1', '64:ff9b::1', '::1', '10.0.0.1', 'x'].map(embeddedIpv4),
  ).toEqual(['10.0.0.1', '10.0.0.1', '0.0.0.1', undefined, undefined, undefined]);
});
