import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RequestBatch } from '../../../connectors/http2/transport.ts';
import { freePort } from '../../../ops/local/ports.ts';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import { openTransport, repliesOf } from '../../support/http2/peer.ts';

/** Debian's package `nghttp2` installs into /usr/sbin, which is not in every user's path. */
const path = `${process.env.PATH}:/usr/sbin`;
const isInstalled = spawnSync('nghttpd', ['--version'], { env: { PATH: path } }).status === 0;
if (!isInstalled)
  console.warn('nghttpd is not installed: its tests are skipped (apt-get install nghttp2).');

let directory: string;
let ca: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'carillon-nghttpd-'));
  const authority = await openCertificateAuthority();
  const { certificate, privateKey } = await authority.issueServer();
  ca = authority.certificate;
  await writeFile(join(directory, 'key.pem'), privateKey);
  await writeFile(join(directory, 'cert.pem'), certificate);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Starts nghttpd and waits until it accepts connections. */
async function startNghttpd(options: string[]): Promise<{ url: string; process: ChildProcess }> {
  const port = await freePort();
  const files = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const args = [
    '--echo-upload',
    '--address=127.0.0.1',
    '-d',
    directory,
    ...options,
    String(port),
    ...files,
  ];
  const child = spawn('nghttpd', args, { env: { PATH: path }, stdio: 'ignore' });
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isUp = await new Promise((resolve) =>
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false)),
    );
    socket.destroy();
    if (isUp || child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return { url: `https://127.0.0.1:${port}`, process: child };
}

const batch = (size: number, count: number): RequestBatch => ({
  template: {
    pathPrefix: '/3/device/',
    headers: {
      authorization: `bearer ${'t'.repeat(200)}`,
      'apns-topic': 'com.example',
      'x-p': String(size),
    },
    batchHeaders: ['x-p'],
    requestHeaderName: 'apns-id',
    body: Buffer.from(`{"badge":,"pad":"${'x'.repeat(size)}"}`),
    spliceAt: 9,
  },
  requests: Array.from({ length: count }, (_, n) => ({
    path: n.toString(16).padStart(64, '0'),
    headerValue: `id-${n}`,
    splice: String(n),
  })),
});

/** Returns the reply of nghttpd to each request of a batch. */
const echoes = (size: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    kind: 'response',
    status: 200,
    body: `{"badge":${n},"pad":"${'x'.repeat(size)}"}`,
  }));

describe.skipIf(!isInstalled)('nghttpd receives and returns every body', () => {
  test.each([
    ['by default', []],
    ['with padding', ['--padding=200']],
    ['with trailers', ['--trailer=x-trailer: yes']],
    ['with no header table', ['--header-table-size=0', '--encoder-header-table-size=0']],
    ['with a small header table', ['--header-table-size=200', '--encoder-header-table-size=100']],
    ['with windows of 31 bytes', ['--window-bits=5']],
    ['with a connection window of 1023 bytes', ['--connection-window-bits=16', '--window-bits=10']],
    ['with three streams', ['--max-concurrent-streams=3']],
  ])('%s', async (_, options) => {
    const { url, process: child } = await startNghttpd(options);
    const { transport } = openTransport({ url, ca }, { maxConnections: 1 });
    for (const [size, count] of [
      [100, 200],
      [3000, 20],
      [40_000, 3],
    ] as const)
      expect(await repliesOf(transport, batch(size, count))).toMatchObject(echoes(size, count));
    await transport.close();
    child.kill();
  });
});
