import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';

test.runIf(process.platform === 'linux')(
  'a free port is not among those that Linux gives to programs that ask for any port',
  async () => {
    const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
    expect(await freePort()).toBeLessThan(Number.parseInt(range, 10));
  },
);
