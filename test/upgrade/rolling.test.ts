import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../ops/sandbox/apns/server.ts';
import { Database } from '../../shared/db/pool.ts';
import { migrateTables, migrationFolder } from '../../shared/db/schema/migrate.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { pendingChanges } from '../../shared/queue/migrate.ts';
import { send } from '../support/api.ts';
import { createEmptyDatabase, type TestDatabase } from '../support/database.ts';
import { loopbackIdentity } from '../support/gateways/identity.ts';
import { insertIos } from '../support/service.ts';
import { checkOut, here, readLastRelease } from './releases.ts';
import {
  migrateWith,
  useVersionedProcesses,
  type VersionedProcess,
} from './versioned-processes.ts';

const devices = 20_000;
const pollOptions = { timeout: 60_000, interval: 100 };

const release = await readLastRelease();
const folder = await mkdtemp(join(tmpdir(), 'carillon-upgrade-'));
const obstacle = await checkOut(release, folder);
if (obstacle !== undefined) {
  await rm(folder, { recursive: true });
  process.stderr.write(`the upgrade tests are skipped: ${obstacle}\n`);
}
const old = join(folder, 'sources');

describe.skipIf(obstacle !== undefined)(
  `an upgrade from ${release.version}`,
  { timeout: 180_000 },
  () => {
    const processes = useVersionedProcesses();
    let gateway: ApnsGateway;
    const { publicKey, ...own } = createApnsCredentials();

    beforeAll(async () => {
      const keys = [{ ...own, publicKey }];
      gateway = await startApnsGateway({ keys, ...(await loopbackIdentity()), maxStreams: 20 });
    });
    afterAll(async () => {
      await gateway?.close();
      await rm(folder, { recursive: true, force: true });
    });

    /**
     * Waits until `total` more requests have arrived. Then slows the gateway down, so that the push
     * continues for long.
     */
    async function slowDownAfter(total: number): Promise<void> {
      await gateway.waitFor(gateway.total + total);
      gateway.misbehave({ kind: 'slow', delayMs: 400 });
    }

    async function createApp(url: string, db: Database): Promise<App> {
      const reply = await send(`${url}/console/api/apps`, 'POST', {
        admin: true,
        body: { name: 'Upgraded' },
      });
      const app: App = reply.body;
      const body = { auth: 'token', ...own, endpoint: gateway.url, ca: gateway.ca };
      const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
      expect((await send(url + path, 'PUT', { admin: true, body })).status).toBe(200);
      await insertIos(db, app, devices);
      return app;
    }

    /** Sends a push to all devices or to one. Returns its id. */
    async function push(url: string, app: App, target: object = {}): Promise<string> {
      const body = { data: { alert: 'Hello' }, ...target };
      const reply = await send(`${url}/1.1/push`, 'POST', { app, master: true, body });
      expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
      return reply.body.objectId;
    }

    async function record(url: string, app: App, objectId: string) {
      return (await send(`${url}/1.1/tables/Notifications/${objectId}`, 'GET', { app })).body;
    }

    /** Saves a device and pushes to it, with the api at `url`. */
    async function saveAndPush(url: string, app: App, deviceToken: string): Promise<string> {
      const body = { deviceType: 'ios', deviceToken, apnsTopic: own.topics[0] };
      const saved = await send(`${url}/1.1/installations`, 'POST', { app, body });
      expect(saved, JSON.stringify(saved.body)).toMatchObject({ status: 201 });
      return push(url, app, { where: { deviceToken } });
    }

    /** Waits until a push is done. Checks that each of its devices is counted. */
    async function expectDone(
      url: string,
      app: App,
      objectId: string,
      count = devices,
    ): Promise<void> {
      await expect
        .poll(() => record(url, app, objectId), pollOptions)
        .toMatchObject({
          status: 'done',
          devices: count,
          successes: count,
          outcomes: { sent: count },
        });
    }

    async function readiness({ url }: VersionedProcess): Promise<number | undefined> {
      return (await fetch(`${url}/readyz`).catch(() => undefined))?.status;
    }

    /**
     * Creates a database with the schema of the last release before the tests of a block, and drops
     * it after them.
     */
    function useReleasedDatabase() {
      let database: TestDatabase;
      let db: Database;

      beforeAll(async () => {
        database = await createEmptyDatabase();
        db = new Database({ url: database.url, applicationName: 'test' });
        await migrateWith(old, database.url);
      });
      afterAll(async () => {
        await db?.close();
        await database?.drop();
      });
      return {
        get url() {
          return database.url;
        },
        get db() {
          return db;
        },
      };
    }

    describe('with the migration before the new processes', () => {
      const database = useReleasedDatabase();

      test('sends a running push once to each device', async () => {
        const { url: databaseUrl } = database;
        const oldApi = await processes.start(old, 'api', databaseUrl);
        const oldDispatcher = await processes.start(old, 'dispatcher', databaseUrl);
        await Promise.all([oldApi.ready, oldDispatcher.ready]);
        const app = await createApp(oldApi.url, database.db);
        const large = await push(oldApi.url, app);
        await slowDownAfter(2000);
        await migrateWith(here, databaseUrl);
        expect(await pendingChanges(databaseUrl)).toEqual([]);
        const small = [await saveAndPush(oldApi.url, app, 'a'.repeat(64))];
        expect(await record(oldApi.url, app, large)).toMatchObject({ status: 'in-queue' });
        gateway.behave();
        await slowDownAfter(2000);
        const newDispatcher = await processes.start(here, 'dispatcher', databaseUrl);
        await newDispatcher.ready;
        expect(await oldDispatcher.stop()).toBe(0);
        expect(gateway.total).toBeLessThan(devices);
        const newApi = await processes.start(here, 'api', databaseUrl);
        await newApi.ready;
        expect(await oldApi.stop()).toBe(0);
        expect(await record(newApi.url, app, large)).toMatchObject({ status: 'in-queue' });
        gateway.behave();
        small.push(await saveAndPush(newApi.url, app, 'b'.repeat(64)));
        await expectDone(newApi.url, app, large);
        for (const objectId of small) await expectDone(newApi.url, app, objectId, 1);
        const all = devices + small.length;
        expect([gateway.total, gateway.distinct]).toEqual([all, all]);
        await Promise.all([newApi.stop(), newDispatcher.stop()]);
      });
    });

    describe('with the new processes before the migration', () => {
      const database = useReleasedDatabase();
      let app: App;
      let api: VersionedProcess;
      let dispatcher: VersionedProcess;

      test('they wait, unready, and take over a running push', async () => {
        gateway.forget();
        const { url: databaseUrl } = database;
        const oldApi = await processes.start(old, 'api', databaseUrl);
        const oldDispatcher = await processes.start(old, 'dispatcher', databaseUrl);
        const hasChanges = (await pendingChanges(databaseUrl)).length > 0;
        api = await processes.start(here, 'api', databaseUrl);
        dispatcher = await processes.start(here, 'dispatcher', databaseUrl);
        await Promise.all([oldApi.ready, oldDispatcher.ready]);
        app = await createApp(oldApi.url, database.db);
        // A release may contain no database changes.
        const expected = hasChanges ? 503 : 200;
        await expect.poll(() => readiness(api), pollOptions).toBe(expected);
        await expect.poll(() => readiness(dispatcher), pollOptions).toBe(expected);
        const large = await push(oldApi.url, app);
        await slowDownAfter(3000);
        await migrateWith(here, databaseUrl);
        await Promise.all([api.ready, dispatcher.ready]);
        expect(await readiness(api)).toBe(200);
        expect(await oldApi.stop()).toBe(0);
        expect(await oldDispatcher.stop()).toBe(0);
        expect(gateway.total).toBeLessThan(devices);
        gateway.behave();
        await expectDone(api.url, app, large);
        expect([gateway.total, gateway.distinct]).toEqual([devices, devices]);
      });

      test('a downgrade during a push loses and repeats nothing', async () => {
        gateway.forget();
        const { url: databaseUrl } = database;
        const large = await push(api.url, app);
        await slowDownAfter(3000);
        await migrateFurther(database.db, databaseUrl);
        const small = [await saveAndPush(api.url, app, 'a'.repeat(64))];
        gateway.behave();
        await slowDownAfter(2000);
        const oldDispatcher = await processes.start(old, 'dispatcher', databaseUrl);
        const oldApi = await processes.start(old, 'api', databaseUrl);
        await Promise.all([oldApi.ready, oldDispatcher.ready]);
        expect(await dispatcher.stop()).toBe(0);
        expect(await api.stop()).toBe(0);
        expect(gateway.total).toBeLessThan(devices);
        gateway.behave();
        small.push(await saveAndPush(oldApi.url, app, 'b'.repeat(64)));
        await expectDone(oldApi.url, app, large);
        for (const objectId of small) await expectDone(oldApi.url, app, objectId, 1);
        const all = devices + small.length;
        expect([gateway.total, gateway.distinct]).toEqual([all, all]);
        await Promise.all([oldApi.stop(), oldDispatcher.stop()]);
      });
    });

    /** Adds a column to every table, like a migration of a future version. */
    async function migrateFurther(db: Database, databaseUrl: string): Promise<void> {
      const { rows } = await db.query<{ name: string }>(
        `SELECT relname AS name FROM pg_class
        WHERE relkind IN ('r', 'p') AND NOT relispartition
          AND relnamespace = 'public'::regnamespace`,
      );
      expect(rows.length).toBeGreaterThan(20);
      const migrations = join(folder, 'migrations');
      await cp(migrationFolder, migrations, { recursive: true });
      const statements = rows.map(
        ({ name }) => `ALTER TABLE ${name} ADD COLUMN of_a_later_version integer;`,
      );
      await writeFile(join(migrations, '9999_later.sql'), statements.join('\n'));
      expect(await migrateTables(databaseUrl, { folder: migrations })).toEqual(['9999_later']);
    }
  },
);
