import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import { listen } from '../../../ops/sandbox/kit/listen.ts';

/**
 * Program that prints, for each server (arguments from 3 on), whether a client with an additional
 * authority (argument 2) trusts the server.
 */
const program = `
  import { connect } from 'node:tls';
  import { secureContextTrusting } from ${JSON.stringify(new URL('../../../shared/http/trust.ts', import.meta.url).href)};
  const [ca, ...ports] = process.argv.slice(1);
  for (const port of ports) {
    const socket = connect({ port: Number(port), host: '127.0.0.1', secureContext: secureContextTrusting(ca), ALPNProtocols: ['h2'] });
    const isTrusted = await new Promise((resolve) => {
      socket.once('secureConnect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    console.log(isTrusted);
  }
`;

test("an additional authority is trusted in addition to the system's", async () => {
  const authorities = await Promise.all([1, 2, 3].map(() => openCertificateAuthority()));
  const ports: string[] = [];
  for (const authority of authorities) {
    const server = await listen({ authority }, ({ cert, key }) =>
      createServer({ cert, key, ALPNProtocols: ['h2'] }, (socket) =>
        socket.on('error', () => undefined),
      ),
    );
    onTestFinished(() => server.close());
    ports.push(new URL(server.url).port);
  }
  const folder = await mkdtemp(join(tmpdir(), 'carillon-trust-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'system.pem');
  await writeFile(file, authorities[1]?.certificate ?? '');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', program, '--', authorities[0]?.certificate ?? '', ...ports],
    { env: { NODE_EXTRA_CA_CERTS: file } },
  );
  expect(stdout.trim().split('\n')).toEqual(['true', 'true', 'false']);
});
