import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';
import { blocksOf, openTerminal, runShell, type Terminal } from './pages.ts';

let database: TestDatabase;
let folder: string;

beforeAll(async () => {
  database = await createEmptyDatabase();
  folder = await mkdtemp(join(tmpdir(), 'carillon-production-'));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(join(folder, 'AuthKey_ABCDE12345.p8'), pem);
  const account = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  await writeFile(
    join(folder, 'service-account.json'),
    JSON.stringify({
      type: 'service_account',
      project_id: 'example',
      private_key_id: '1',
      token_uri: 'https://oauth2.googleapis.com/token',
      client_email: 'push@example.iam.gserviceaccount.com',
      private_key: account.export({ type: 'pkcs8', format: 'pem' }),
    }),
  );
  await writeFile(
    join(folder, 'xiaomi.json'),
    JSON.stringify({ appId: '1', appSecret: 's', packageName: 'com.example.app' }),
  );
});

afterAll(async () => {
  await rm(folder, { recursive: true });
  await database.drop();
});

/**
 * Waits until the process in a terminal is ready. A shell polls, where a reader would look at the
 * log. If the terminal ends before, throws its output.
 */
async function ready(terminal: Terminal, port: number): Promise<void> {
  const poll = `until curl -sf http://127.0.0.1:${port}/readyz >/dev/null; do sleep 0.2; done`;
  const polls = openTerminal([poll], { cwd: folder });
  const ended = await Promise.race([terminal.ended, polls.ended.then(() => undefined)]);
  polls.interrupt();
  if (ended) throw new Error(`the process ended: ${ended.stdout}${ended.stderr}`);
}

// Six processes start one after another, and each takes seconds on a busy machine.
test('every command of docs/production.md works on an empty database', async () => {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const blocks = (await blocksOf('production.md', 'sh')).map((block) =>
    block
      .replaceAll('<app id>', '"$APP"')
      .replaceAll('<team id>', 'TEAM123456')
      .replace('postgresql://carillon@db.example/carillon', database.url)
      .replace('PORT=8080', `PORT=${port}`)
      .replace('METRICS_PORT=9464', `METRICS_PORT=${metricsPort}`)
      .replace(
        '"My app"',
        '"My app" --json > app.json\nAPP=$(grep -o \'"appId":"[^"]*"\' app.json | cut -d\'"\' -f4)',
      ),
  );
  const [variables = '', api = '', dispatcher = '', doctor = '', apps = '', goLive = '', ...more] =
    blocks;
  expect(more).toEqual([]);
  const written = await runShell([variables], { cwd: folder });
  expect(written, written.stderr).toMatchObject({ code: 0 });
  expect((await stat(join(folder, 'carillon.env'))).mode & 0o777).toBe(0o600);
  expect((await runShell([variables], { cwd: folder })).stderr).toContain('cannot overwrite');

  const servers: Terminal[] = [];
  const serve = async (block: string, listensOn: number) => {
    const terminal = openTerminal([block], { cwd: folder });
    servers.push(terminal);
    await ready(terminal, listensOn);
  };
  try {
    await serve(api, port);
    await serve(dispatcher, metricsPort);
    const ports = { PORT: String(port), METRICS_PORT: String(metricsPort) };
    const result = await runShell([doctor, apps, goLive], { cwd: folder, env: ports });
    expect(result, result.stdout + result.stderr).toMatchObject({ code: 0 });
    expect(result.stdout).toContain('ready');
    expect(result.stdout).toContain('clients reach the service at https://push.example');
  } finally {
    for (const server of servers) server.interrupt();
    await Promise.all(servers.map(({ ended }) => ended));
  }
}, 120_000);
