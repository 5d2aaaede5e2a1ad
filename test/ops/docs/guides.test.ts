import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FunctionHost } from '../../../ops/functions/host.ts';
import { freePort } from '../../../ops/local/ports.ts';
import { startTestApi } from '../../support/api.ts';
import { createTestDatabase } from '../../support/database.ts';
import { useTestService } from '../../support/service.ts';
import { blocksOf, runShell, serviceEnvironment } from './pages.ts';

const service = useTestService();
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-guides-'));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** Runs commands of a page against the service. */
const shell = (commands: string[]) =>
  runShell(commands, {
    cwd: folder,
    env: serviceEnvironment(service),
  });

test('every call of docs/accounts.md works unchanged', async () => {
  const app = await service.api.createApp();
  const variables = `URL=${service.api.url} APP_ID=${app.appId} APP_KEY=${app.appKey}`;
  const blocks = await blocksOf('accounts.md', 'sh');
  const { code, stdout, stderr } = await shell([variables, ...blocks]);
  expect(code, stderr).toBe(0);
  expect(stdout).not.toContain('"error"');
  // Sign-up by name, by number and by platform, and the changed password.
  expect(stdout.match(/"sessionToken"/g)?.length).toBeGreaterThanOrEqual(4);
  expect(stdout).toContain('"mobilePhoneVerified":true');
});

test('the app, the key, the device and the dry run of docs/first-push.md work', async () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(join(folder, 'AuthKey_ABCDE12345.p8'), pem);
  const [create = '', iphone = '', fcm = '', register = '', push = '', ...more] = await blocksOf(
    'first-push.md',
    'sh',
  );
  expect(more).toEqual([]);
  expect(fcm).toContain('profile put "$APP_ID" fcm');
  // The check of a profile calls the gateway of the vendor.
  const offline = iphone.replace(/^.*profile check.*$/m, '');
  const { code, stdout, stderr } = await shell([create, offline, register, push]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('would go to 1 device');
});

describe('docs/cloud-functions.md', () => {
  test('has a function and a hook that answer as the page says', async () => {
    const files = await blocksOf('cloud-functions.md', 'js');
    const dir = join(folder, 'functions');
    for (const [at, name] of ['hello.js', 'hooks/_User.beforeSave.js'].entries()) {
      await mkdir(dirname(join(dir, name)), { recursive: true });
      await writeFile(join(dir, name), files[at] ?? '');
    }
    const database = await createTestDatabase();
    const [port = 0, apiPort = 0] = await Promise.all([freePort(), freePort()]);
    const token = 'a token of both of them';
    const apiUrl = `http://127.0.0.1:${apiPort}`;
    const host = new FunctionHost({ dir, port, token, apiUrl, log: () => undefined });
    await host.start();
    const env = {
      PORT: String(apiPort),
      CARILLON_FUNCTIONS_URL: `http://127.0.0.1:${port}`,
      CARILLON_FUNCTIONS_TOKEN: token,
    };
    const api = await startTestApi({ databaseUrl: database.url, env });
    try {
      const app = await api.createApp();
      const [calls = ''] = await blocksOf('cloud-functions.md', 'sh');
      const variables = `URL=${api.url} APP_ID=${app.appId} APP_KEY=${app.appKey}`;
      const { code, stdout, stderr } = await shell([variables, calls]);
      expect(code, stderr).toBe(0);
      expect(stdout).toContain('{"result":"Hello Ada"}');
      expect(stdout).toContain('"code":142');
      expect(stdout).toContain('This name is reserved.');
    } finally {
      await api.close();
      await host.close();
      await database.drop();
    }
  });
});
