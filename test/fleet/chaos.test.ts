import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createAccess, LocalService } from '../../ops/local/service.ts';
import type { Supervised } from '../../ops/local/supervised.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../ops/sandbox/apns/server.ts';
import { currentEnvironment } from '../../shared/config/config.ts';
import { Database } from '../../shared/db/pool.ts';

/** Rounds of kills. `npm run chaos` sets more rounds, which also means more devices. */
const rounds = Number(currentEnvironment().CHAOS_ROUNDS ?? 1);
const devices = 8000 * rounds;

let dataDir: string;
let service: LocalService;
let second: Supervised;
let gateway: ApnsGateway;
let db: Database;
let url: string;
const adminToken = randomBytes(24).toString('base64url');
const _secret = randomBytes(32).toString('base64');

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'carillon-chaos-'));
  await chmod(dataDir, 0o755);
  const access = { ...(await createAccess()), adminToken };
  url = access.publicUrl;
  const env = { ...currentEnvironment(), LOG_LEVEL: 'silent', DISPATCHER_THREADS: '1' };
  service = new LocalService({
    ...access,
    dataDir,
    databaseUrl: undefined,
    env,
    log: () => undefined,
  });
  await service.start();
  second = await service.startDispatcher({ METRICS_PORT: '0' });
  db = new Database({ url: service.databaseUrl, applicationName: 'chaos' });
}, 60_000);

afterAll(async () => {
  await second?.stop(5000);
  await db?.close();
  await service?.stop();
  await gateway?.close();
  await rm(dataDir, { recursive: true, force: true });
}, 60_000);

const texts = z.record(z.string(), z.unknown()).transform((reply) => ({
  ...reply,
  appId: String(reply.appId),
  masterKey: String(reply.masterKey),
}));
type AppKeys = { appId: string; masterKey: string };

async function admin(method: string, path: string, body: object): Promise<AppKeys> {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const reply = await fetch(`${url}/console/api${path}`, {
    method,
    headers,
    body: JSON.stringify(body),
  });
  expect(reply.ok).toBe(true);
  return texts.parse(await reply.json());
}

async function prepare(): Promise<{ app: AppKeys; tokens: string[] }> {
  const { publicKey, ...own } = createApnsCredentials();
  gateway = await startApnsGateway({ keys: [{ ...own, publicKey }] });
  const app = await admin('POST', '/apps', { name: 'Chaos' });
  const profile = { auth: 'token', ...own, endpoint: gateway.url, ca: gateway.ca };
  await admin('PUT', `/apps/${app.appId}/profiles/apns/_default`, profile);
  const { rows } = await db.query<{ device_token: string }>(
    `INSERT INTO installation (app_id, object_id, device_type, device_token, topic)
     SELECT $1, lpad(to_hex(i), 24, '0'), 'ios', encode(sha256(i::text::bytea), 'hex'), $3
       FROM generate_series(1, $2::int) AS i RETURNING device_token`,
    [app.appId, devices, own.topics[0]],
  );
  return { app, tokens: rows.map((row) => row.device_token) };
}

const keys = (app: AppKeys) => ({
  'x-lc-id': app.appId,
  'x-lc-key': `${app.masterKey},master`,
  'content-type': 'application/json',
});

/** Returns the record, or undefined while the api restarts. */
async function record(
  app: AppKeys,
  objectId: string,
): Promise<Record<string, unknown> | undefined> {
  const reply = await fetch(`${url}/1.1/notifications/${objectId}`, { headers: keys(app) }).catch(
    () => undefined,
  );
  return reply?.ok ? z.record(z.string(), z.unknown()).parse(await reply.json()) : undefined;
}

/** Kills a process. Ignores a process that has exited and is restarting. */
function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

describe('processes that are killed while a push is sent', () => {
  test('lose no recipient, and the record has exact sums', { timeout: 600_000 }, async () => {
    const { app, tokens } = await prepare();
    const body = JSON.stringify({ data: { alert: 'Hello' } });
    const reply = await fetch(`${url}/1.1/push`, { method: 'POST', headers: keys(app), body });
    const { objectId } = z.object({ objectId: z.string() }).parse(await reply.json());
    const kills = [
      () => kill(service.apiPid, 'SIGKILL'),
      () => kill(second.pid, 'SIGKILL'),
      // SIGQUIT is an immediate stop: PostgreSQL recovers from its log.
      () => kill(service.databasePid, 'SIGQUIT'),
      () => kill(service.dispatcherPid, 'SIGKILL'),
      () =>
        db.query(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
        ),
    ];
    const each = Math.floor((devices * 0.7) / (kills.length * rounds));
    for (let i = 0; i < kills.length * rounds; i += 1) {
      await gateway.waitFor(each * (i + 1));
      await Promise.resolve(kills[i % kills.length]?.()).catch(() => undefined);
    }
    await expect
      .poll(() => record(app, objectId), { timeout: 500_000, interval: 200 })
      .toMatchObject({ status: 'done', devices, successes: devices, outcomes: { sent: devices } });
    expect(tokens.filter((token) => gateway.seen(token) === 0)).toEqual([]);
    process.stderr.write(
      `chaos: ${gateway.total - devices} of ${devices} sent twice over ${kills.length * rounds} kills\n`,
    );
  });
});
