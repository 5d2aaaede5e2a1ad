import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Vault } from '../../../shared/crypto.ts';
import { findApp } from '../../../shared/db/tables/apps.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { bareEnvironment } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';
import { blocksOf, runShell, serviceEnvironment } from './pages.ts';

let folder: string;
/**
 * Shell blocks of the page, in order. The first block starts the service, which is already running.
 */
let blocks: string[];

const service = useTestService();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-started-'));
  blocks = await blocksOf('getting-started.md', 'sh');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writeFile(join(folder, 'AuthKey_ABCDE12345.p8'), pem);
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

test('every command of docs/getting-started.md works unchanged', async () => {
  const [start, create = '', profile = '', register = '', dryRun = '', send = '', ...more] = blocks;
  expect(start).toBe('npm ci && npm start\n');
  expect(more).toEqual([]);
  const prepared = await shell([create, profile, register, dryRun]);
  expect(prepared, prepared.stderr).toMatchObject({ code: 0 });
  expect(prepared.stdout).toContain('objectId');
  expect(prepared.stdout).toContain('APNs');

  // Nothing must be sent to Apple, so from here on the profile points to the sandbox.
  const { appId } = JSON.parse(await readFile(join(folder, 'app.json'), 'utf8'));
  const app = await findApp(service.db, new Vault(testConfig(service.databaseUrl).secrets), appId);
  if (!app) throw new Error('the app is not there');
  await service.addApnsProfile(app);
  await service.dispatch();
  const sent = await shell([create.replace(/^npx.*\n/, ''), send]);
  expect(sent, sent.stderr).toMatchObject({ code: 0 });
  const { objectId } = JSON.parse(await readFile(join(folder, 'push.json'), 'utf8'));
  expect(JSON.parse(sent.stdout)).toMatchObject({ objectId });
  expect(await service.untilDone(app, objectId)).toMatchObject({ status: 'done', devices: 1 });
  expect(service.apns.accepted).toBe(1);
});

describe('docs/sending.md', () => {
  let app: App;

  beforeAll(async () => {
    app = await service.api.createApp();
    await service.addApnsProfile(app);
    const ios = { deviceType: 'ios', apnsTopic: 'com.example.app' };
    for (const installation of [
      { ...ios, deviceToken: 'ab'.repeat(32), channels: ['news'] },
      { ...ios, deviceToken: 'cd'.repeat(32) },
    ])
      await service.api.request('POST', '/1.1/installations', { app, body: installation });
  });

  test('has commands that work unchanged, and none that reaches every device', async () => {
    const variables = `URL=${service.api.url} APP_ID=${app.appId} MASTER_KEY=${app.masterKey}`;
    const printed: string[] = [];
    for (const block of await blocksOf('sending.md', 'sh')) {
      const result = await shell([variables, block]);
      expect(result, block + result.stderr).toMatchObject({ code: 0 });
      expect(result.stdout, block).not.toContain('"error"');
      if (block.includes('--dry-run'))
        expect(result.stdout, block).toContain('would go to 1 device');
      printed.push(result.stdout);
    }
    // The dry runs store nothing, so each record belongs to a curl call.
    const calls = printed.join('\n').match(/"objectId"/g);
    expect(calls).toHaveLength(4);
    const records = await service.api.request('GET', '/1.1/notifications', { app, master: true });
    expect(records.body.results).toHaveLength(4);
  });

  test('has content that is accepted without a warning', async () => {
    const [content = ''] = await blocksOf('sending.md', 'json');
    const { status, body } = await service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body: JSON.parse(content),
    });
    expect([status, Object.keys(body)]).toEqual([200, ['objectId', 'createdAt']]);
  });

  test('has a call for the JavaScript SDK that is accepted', async () => {
    const [call = ''] = await blocksOf('sending.md', 'js');
    const script = [
      "import AV from 'leancloud-storage';",
      'const [appId, appKey, masterKey] = process.argv.slice(1);',
      call
        .replace('https://push.example.com', service.api.url)
        .replace('await AV', 'const reply = await AV'),
      'console.log(JSON.stringify(reply));',
    ].join('\n');
    const child = spawn(
      process.execPath,
      ['--input-type=module', '-e', script, app.appId, app.appKey, app.masterKey],
      { cwd: fileURLToPath(new URL('../../..', import.meta.url)), env: bareEnvironment() },
    );
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(stdout, stderr).toContain('objectId');
  });
});
