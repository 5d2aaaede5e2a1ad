import { lookup } from 'node:dns/promises';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { loopbackNetworks, PrivateHosts } from '../../shared/config/private-hosts.ts';
import {
  guardedLookup,
  isRefusedUrl,
  requireAllowedAddress,
  setPrivateHosts,
} from '../../shared/http/outbound-addresses.ts';

afterEach(() => setPrivateHosts(loopbackNetworks));

const privateAddresses = [
  ...[
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '172.16.0.1',
    '172.31.255.255',
  ],
  ...[
    '192.0.0.1',
    '192.0.2.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
  ],
  ...[
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
  ],
  ...[
    '64:ff9b::10.0.0.1',
    '64:ff9b::a00:1',
    '64:ff9b:1::1',
    '2001::1',
    '2001:db8::1',
    '2002:a00:1::1',
  ],
  ...['fc00::1', 'fd12:3456::1', 'fec0::1', 'ff02::1', '100::1', '3fff::1'],
];
const publicAddresses = [
  ...[
    '1.1.1.1',
    '8.8.8.8',
    '17.188.143.1',
    '100.63.255.255',
    '100.128.0.1',
    '172.15.255.255',
    '172.32.0.1',
  ],
  ...[
    '192.167.255.255',
    '198.17.255.255',
    '2606:4700::1111',
    '2a00:1450::1',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
  ],
];
const metadataAddresses = [
  ...[
    '169.254.169.254',
    '169.254.170.2',
    '169.254.0.23',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
  ],
  ...[
    '::ffff:169.254.169.254',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    'fe80::1',
    'fd00:ec2::254',
    'fd20:ce::254',
  ],
];

describe('an address', () => {
  test.each(privateAddresses)('%s is private: only a list allows it', (address) => {
    expect(new PrivateHosts('').allows(address)).toBe(false);
    expect(new PrivateHosts('0.0.0.0/0, ::/0').allows(address)).toBe(true);
    expect(new PrivateHosts('gateway.internal').allows(address, 'GATEWAY.internal.')).toBe(true);
    expect(new PrivateHosts('gateway.internal').allows(address, 'gateway.internal.example')).toBe(
      false,
    );
  });

  test.each(publicAddresses)('%s is public', (address) => {
    expect(new PrivateHosts('').allows(address)).toBe(true);
  });

  test.each(metadataAddresses)('%s of a metadata service is allowed by no list', (address) => {
    const lists = ['', '0.0.0.0/0, ::/0', '169.254.0.0/16', '169.254.169.254', 'metadata.internal'];
    for (const list of lists)
      expect(new PrivateHosts(list).allows(address, 'metadata.internal')).toBe(false);
  });
});

describe('CARILLON_PRIVATE_HOSTS', () => {
  test('lists networks, addresses and names', () => {
    const hosts = new PrivateHosts(
      ' 127.0.0.2/32,10.1.0.0/16 , fd12::/16, 192.168.7.7,[::1], api.internal. ',
    );
    const allowed = [
      '127.0.0.2',
      '10.1.255.1',
      'fd12::9',
      '192.168.7.7',
      '::1',
      '::ffff:127.0.0.2',
    ];
    expect(allowed.map((address) => hosts.allows(address))).toEqual(allowed.map(() => true));
    const refused = ['127.0.0.1', '127.0.0.3', '10.2.0.1', 'fd13::1', '192.168.7.8', '::2'];
    expect(refused.map((address) => hosts.allows(address))).toEqual(refused.map(() => false));
    expect(hosts.allows('10.9.9.9', 'api.internal')).toBe(true);
  });

  test.each([
    '10.0.0.0/33',
    '::1/129',
    'fd12::/x',
    '1.2.3',
    '0x7f.1',
    '127.1',
    'a/8',
    'a b',
    'http://a',
    'a..b',
    '-a',
    '*',
  ])('refuses %s with its position', (entry) =>
    expect(() => new PrivateHosts(`10.0.0.1,${entry}`)).toThrow('entry 2 '),
  );
});

describe('a connection', () => {
  const resolved = promisify(
    (name: string, callback: (error: Error | null, found?: unknown) => void) =>
      guardedLookup(name, { all: true }, (error, found) => callback(error, found)),
  );

  test('uses only the allowed addresses of a name', async () => {
    const all = await lookup('localhost', { all: true });
    expect(await resolved('localhost')).toEqual(all);
    setPrivateHosts('');
    await expect(resolved('localhost')).rejects.toMatchObject({ code: 'ADDRESS_REFUSED' });
    setPrivateHosts('localhost');
    expect(await resolved('localhost')).toEqual(all);
  });

  test.each(['127.0.0.1', '[::1]', '[::ffff:7f00:1]', '10.0.0.1', '169.254.169.254'])(
    'is not made to %s',
    (host) => {
      setPrivateHosts('');
      expect(() => requireAllowedAddress(host)).toThrow(/CARILLON_PRIVATE_HOSTS/);
    },
  );

  test.each([
    ...[
      'http://127.1/',
      'http://2130706433/',
      'http://0x7f.0.0.1/',
      'http://0177.0.0.1/',
      'http://127.0.0.1./',
    ],
    ...[
      'http://[::1]:8080/x',
      'http://[::ffff:127.0.0.1]',
      'https://10.0.0.8',
      'http://0/',
      'http://１２７.0.0.1',
    ],
    ...[
      'http://localhost',
      'http://LOCALHOST.:80',
      'http://gateway.localhost',
      'http://169.254.169.254/latest',
    ],
  ])('is refused before it is made, for %s', (url) => {
    setPrivateHosts('');
    expect(isRefusedUrl(url)).toBe(true);
    setPrivateHosts(`${loopbackNetworks},10.0.0.0/8,0.0.0.0/32`);
    expect(isRefusedUrl(url)).toBe(url.includes('169.254'));
  });

  test('to a public address or a name is not refused before it is made', () => {
    setPrivateHosts('');
    const urls = [
      'https://api.push.apple.com',
      'http://8.8.8.8',
      'https://localhost.example',
      'https://[2606:4700::1]',
      'x',
    ];
    expect(urls.filter(isRefusedUrl)).toEqual([]);
  });
});
