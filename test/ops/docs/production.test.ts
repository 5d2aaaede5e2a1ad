import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.ts';
import { freePort } from '../../support/http2/reverse-proxy.ts';
import { blocksOf, runShell } from './pages.ts';

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

/** Waits until a process is ready: a shell polls where a reader looks at the log. */
const untilReady = (port: number) =>
  `until curl -sf http://127.0.0.1:${port}/readyz >/dev/null; do sleep 0.2; done`;

// Six processes start one after another, each for seconds on a busy machine.
test('every command of docs/production.md works on an empty database', async () => {
  const [start = '', apps = '', ...more] = await blocksOf('production.md', 'sh');
  expect(more).toEqual([]);
  const [port, metricsPort] = [await freePort(), await freePort()];
  const [processes, doctor] = start.split(/^(?=npx carillon doctor)/m);
  const commands = [
    processes,
    `export PUBLIC_URL=http://127.0.0.1:${port} METRICS_PORT=${metricsPort}`,
    untilReady(port),
    untilReady(metricsPort),
    doctor,
    apps.replace(
      '"My app"',
      '"My app" --json > app.json\nAPP=$(grep -o \'"appId":"[^"]*"\' app.json | cut -d\'"\' -f4)',
    ),
  ]
    .join('\n')
    .replaceAll('<app id>', '"$APP"')
    .replaceAll('<team id>', 'TEAM123456')
    .replace('postgresql://carillon@db.example/carillon', `'${database.url}'`)
    .replace('PORT=8080', `HOST=127.0.0.1 PORT=${port}`)
    .replace('METRICS_PORT=9464', `METRICS_PORT=${metricsPort}`);
  const result = await runShell([commands], { cwd: folder });
  expect(result, result.stdout + result.stderr).toMatchObject({ code: 0 });
  expect(result.stdout).toContain('ready');
}, 120_000);
