import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkRestoration } from '../../api/services/operator/doctor/service-checks.ts';
import { writeRunInfo } from '../../ops/local/data-files.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../ops/local/postgres/server.ts';
import { backUp } from '../../ops/local/recovery/backup.ts';
import { pauseRestored, type Restored, restore } from '../../ops/local/recovery/restore.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { migrate } from '../../shared/queue/migrate.ts';
import { carillon } from '../support/cli.ts';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { readPush } from '../support/tables.ts';
import { useTestApi } from '../support/test-api.ts';

const devices = 1500;

const api = useTestApi();

let home: string;
/** Data directories of the service that is backed up, and of the machine that replaces it. */
let [oldDir, newDir, backups]: string[] = [];
let oldServer: EmbeddedPostgres;
let newServer: EmbeddedPostgres;
let before: TestService;
let after: TestService;
let app: App;
let restored: Restored;
/** Pushes: one in progress during the backup, one due after it, and one due much later. */
let ids: { underWay: string; due: string; later: string };
let tokens: string[];

const pathOf = (name: string) => join(home, name);

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'carillon-restore-'));
  await chmod(home, 0o755);
  [oldDir, newDir, backups] = [pathOf('old'), pathOf('new'), pathOf('backups')];
  await mkdir(oldDir ?? '');
  await writeFile(join(oldDir ?? '', 'secret'), 'the secret of the old machine\n', { mode: 0o600 });
  oldServer = await startEmbeddedPostgres({
    dataDir: join(oldDir ?? '', 'postgres'),
    memoryMb: 1024,
    durable: false,
  });
  await migrate(oldServer.databaseUrl);
  before = await startTestService({
    databaseUrl: oldServer.databaseUrl,
    gateway: { maxStreams: 10 },
  });
  app = await before.api.createApp();
  await before.addApnsProfile(app);
  tokens = await before.addIosInstallations(app, devices);
  const dueAtMs = Date.now() + 3000;
  ids = {
    due: await beginPush(before, app, { push_time: new Date(dueAtMs).toISOString() }),
    later: await beginPush(before, app, {
      push_time: new Date(dueAtMs + 86_400_000).toISOString(),
    }),
    underWay: '',
  };
  await insertMessages();
  // Slow, so that both pushes take minutes and are open when the backup ends.
  before.apns.misbehave({ kind: 'slow', delayMs: 2000 });
  await before.dispatch();
  ids.underWay = await beginPush(before, app);
  await before.apns.waitFor(20);
  await writeRunInfo(oldDir ?? '', { url: '', databaseUrl: oldServer.databaseUrl, metricsUrl: '' });
  const backup = await carillon(['backup', backups ?? ''], {
    env: { CARILLON_DATA_DIR: oldDir ?? '' },
  });
  expect(backup, backup.stderr).toMatchObject({ code: 0 });
  before.apns.behave();
  // The old machine continues. The backup does not contain this.
  await before.untilDone(app, ids.underWay);
  await before.untilDone(app, ids.due);
  const result = await carillon(['--json', 'restore', backups ?? ''], {
    env: { CARILLON_DATA_DIR: newDir ?? '' },
  });
  expect(result, result.stderr).toMatchObject({ code: 0 });
  restored = result.json();
  newServer = await startEmbeddedPostgres({
    dataDir: join(newDir ?? '', 'postgres'),
    memoryMb: 1024,
    durable: false,
  });
  after = await startTestService({ databaseUrl: newServer.databaseUrl });
}, 120_000);

afterAll(async () => {
  await after?.close();
  await before?.close();
  await newServer?.stop('immediate');
  await oldServer?.stop('immediate');
  await rm(home, { recursive: true, force: true });
}, 60_000);

/** Inserts two waiting mails: one of this minute and one that is an hour old. */
async function insertMessages(): Promise<void> {
  await before.db.query(
    `INSERT INTO outbox (app_id, kind, recipient, type, body, created_at)
     SELECT $1, 'mail', kind || '@example.com', 'custom', '', now() - age
       FROM (VALUES ('new', interval '1 second'), ('old', interval '1 hour')) AS m (kind, age)`,
    [app.appId],
  );
}

/** Returns the state of a push in the restored database. */
const stateOf = async (objectId: string): Promise<string> =>
  (await readPush(after.db, app, objectId)).state;

describe('a backup in the middle of a push, restored on another machine', {
  timeout: 60_000,
}, () => {
  test('reports what it pauses', async () => {
    const { pushes, scheduled } = restored.held;
    expect(pushes + scheduled).toBe(2);
    expect(restored.held).toMatchObject({ messages: 1, channelMessages: 0 });
    expect(restored.previous).toBeNull();
    expect(await checkRestoration(after.db)).toMatchObject([
      {
        status: 'warn',
        detail: expect.stringContaining('pushes that are still paused by that: 2'),
      },
    ]);
  });

  test('sends nothing twice, and sends new pushes immediately', async () => {
    const [sent, other] = [before.apns.total, after.apns];
    expect(sent).toBe(2 * devices);
    await after.dispatch();
    const fresh = await after.api.createApp();
    await after.addApnsProfile(fresh);
    await after.addIosInstallations(fresh, 10);
    expect(await after.untilDone(fresh, await beginPush(after, fresh))).toMatchObject({
      successes: 10,
    });
    expect(other.total).toBe(10);
    expect(before.apns.total).toBe(sent);
    expect(await stateOf(ids.underWay)).toBe('paused');
    expect(await stateOf(ids.due)).toBe('paused');
    expect(await stateOf(ids.later)).toBe('scheduled');
  });

  test('continues a resumed push from the restored state, and ends a cancelled push', async () => {
    const control = (objectId: string, verb: string) =>
      after.api.request(
        'POST',
        `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`,
        {
          admin: true,
        },
      );
    expect(await control(ids.underWay, 'cancel')).toMatchObject({ status: 200 });
    expect(await stateOf(ids.underWay)).toBe('cancelled');
    const sent = before.apns.total;
    expect(await control(ids.due, 'resume')).toMatchObject({ status: 200 });
    expect(await after.untilDone(app, ids.due)).toMatchObject({ devices, successes: devices });
    // The profile in the restored database points to the old gateway.
    expect(before.apns.total).toBeGreaterThan(sent);
    expect(tokens.filter((token) => before.apns.seen(token) > 3)).toEqual([]);
    expect(await checkRestoration(after.db)).toEqual([]);
  });

  test('drops only old messages, and continues with ids that no device has seen', async () => {
    const { rows } = await after.db.query<{ recipient: string; reason: string | null }>(
      'SELECT recipient, reason FROM outbox WHERE app_id = $1 ORDER BY recipient',
      [app.appId],
    );
    expect(rows).toMatchObject([
      { recipient: 'new@example.com' },
      { recipient: 'old@example.com', reason: 'dropped after a restore' },
    ]);
    expect(rows[0]?.reason).not.toBe('dropped after a restore');
    const highest = async (service: TestService) =>
      (await service.db.query<{ id: number }>('SELECT max(id) AS id FROM notification')).rows[0]
        ?.id ?? 0;
    expect(await highest(after)).toBeGreaterThan((await highest(before)) + 1000);
  });

  test('has the secret, readable only for its owner', async () => {
    expect((await stat(join(newDir ?? '', 'secret'))).mode & 0o777).toBe(0o600);
    expect(await readdir(newDir ?? '')).toEqual(expect.arrayContaining(['postgres', 'secret']));
  });
});

describe('a restore refuses', () => {
  test('a data directory whose database is running', async () => {
    await expect(restore(backups ?? '', oldDir ?? '', undefined)).rejects.toThrow(
      /already running/,
    );
  });

  test('a folder without a backup, and a time before all backups', async () => {
    await expect(restore(newDir ?? '', pathOf('other'), undefined)).rejects.toThrow(
      /holds no backup/,
    );
    const asOf = new Date('2020-01-01T00:00:00Z');
    await expect(restore(backups ?? '', pathOf('other'), asOf)).rejects.toThrow(
      /as old as 2020-01-01/,
    );
  });

  test('an interrupted backup, but no other backup in its folder', async () => {
    const drafts = pathOf('drafts');
    for (const [name, text] of [
      ['.backup-1', '{"at":"2026-'],
      ['backup-2026-12-01T00-00-00-000Z', ''],
    ] as const)
      for (const folder of [drafts, backups ?? '']) {
        await mkdir(join(folder, name), { recursive: true });
        await writeFile(join(folder, name, 'backup.json'), text);
      }
    await expect(restore(drafts, pathOf('other'), undefined)).rejects.toThrow(/holds no backup/);
    const asOf = new Date('2020-01-01T00:00:00Z');
    await expect(restore(backups ?? '', pathOf('other'), asOf)).rejects.toThrow(
      /as old as 2020-01-01/,
    );
  });

  test('a data directory with another secret', async () => {
    await mkdir(pathOf('strange'));
    await writeFile(join(pathOf('strange'), 'secret'), 'another one\n');
    await expect(restore(backups ?? '', pathOf('strange'), undefined)).rejects.toThrow(
      /not the secret/,
    );
  });
});

test('overdue work of a database that other tools restored is paused, by its URL', async () => {
  const { body } = await api.request('POST', '/1.1/push', {
    app: await api.createApp(),
    master: true,
    body: { data: { alert: 'x' }, push_time: new Date(Date.now() + 3_600_000).toISOString() },
  });
  await api.db.query("UPDATE scheduled_push SET push_time = now() - interval '1 minute'");
  const paused = await pauseRestored(api.databaseUrl, new Date());
  expect(paused).toEqual({ pushes: 0, scheduled: 1, messages: 0, channelMessages: 0 });
  const audit = await api.request('GET', '/console/api/audit?action=service.restore', {
    admin: true,
  });
  expect(audit.body.results).toMatchObject([
    { actor: { name: 'carillon restore' }, after: paused },
  ]);
  const { rows } = await api.db.query(
    'SELECT state, is_plan_held FROM notification WHERE object_id = $1',
    [body.objectId],
  );
  expect(rows).toEqual([{ state: 'paused', is_plan_held: true }]);
});

test('a backup refuses a database of another server', async () => {
  const options = {
    databaseUrl: newServer.databaseUrl,
    dataDir: oldDir ?? '',
    folder: backups ?? '',
    isWithoutSecrets: true,
  };
  await expect(backUp(options)).rejects.toThrow(/not the one that `npm start` runs/);
});
