import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { choosePort, freePort } from '../../../ops/local/ports.ts';

const host = '127.0.0.1';

test.runIf(process.platform === 'linux').each([
  ['a free port', () => freePort()],
  [
    'the port for PORT=0',
    () => choosePort({ requested: 0, defaultPort: 3000, host, variable: 'PORT' }),
  ],
])(
  '%s is not among those that Linux gives to programs that ask for any port',
  async (_, choose) => {
    const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'utf8');
    const port = await choose();
    expect(port).toBeGreaterThan(0);
    expect(port).toBeLessThan(Number.parseInt(range, 10));
  },
);
