import type { ChildProcess } from 'node:child_process';
import { afterEach, describe, expect, test } from 'vitest';
import type { App } from '../../shared/domain/apps/app.ts';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { addDevicesIn, awakeZone, hoursOfNow, makeDue } from '../support/gateways/quiet-hours.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';
import { readBatches, readDevices } from '../support/tables.ts';

/** Devices of a push with variables. Each device has its own text. */
const devices = 6000;
const service = useTestService({ gateway: { keptRequests: 4 * devices } });
const dispatchers = useDispatcherProcesses(service);

async function kill(child: ChildProcess | undefined): Promise<void> {
  const ended = new Promise((resolve) => child?.once('exit', resolve));
  child?.kill('SIGKILL');
  await ended;
}

afterEach(() => kill(dispatchers.latest()));

async function iosApp(options: object = {}): Promise<App> {
  const app = await service.api.createApp(options);
  await service.addApnsProfile(app);
  return app;
}

/** Returns the texts that the gateway received for each token, each text once. */
function textsByToken(): Map<string, Set<string>> {
  const texts = new Map<string, Set<string>>();
  for (const { token, body } of service.apns.requests) {
    const all = texts.get(token) ?? new Set();
    texts.set(token, all.add(JSON.parse(body.toString()).aps.alert));
  }
  return texts;
}

const seenBy = (tokens: string[]): number =>
  tokens.reduce((sum, token) => sum + service.apns.seen(token), 0);

const recordOf = async ({ appId }: App, objectId: string): Promise<Record<string, unknown>> => {
  const path = `/console/api/apps/${appId}/notifications/${objectId}`;
  return (await service.api.request('GET', path, { admin: true })).body;
};

/** Returns the recipients in the settled batches of an app. */
async function settledTokens(app: App): Promise<string[]> {
  const batches = (await readBatches(service.db, app)).filter(({ isSettled }) => isSettled);
  const settled = new Set(batches.flatMap(({ recipients }) => recipients));
  const devices = (await readDevices(service.db, app)).filter(({ id }) => settled.has(id));
  return devices.map(({ deviceToken }) => deviceToken ?? '');
}

describe('kill -9 of the dispatcher in the middle of a push', () => {
  test('with variables: each device gets only its own text, once if its batch was settled', {
    timeout: 120_000,
  }, async () => {
    const app = await iosApp();
    const tokens = await service.addIosInstallations(app, devices);
    await service.db.query(
      `UPDATE installation SET fields = jsonb_build_object('name', 'name of ' || device_token)
        WHERE app_id = $1 AND id % 10 > 0`,
      [app.appId],
    );
    const { rows: named } = await service.db.query<{ token: string; name: string | null }>(
      `SELECT device_token AS token, fields ->> 'name' AS name FROM installation WHERE app_id = $1`,
      [app.appId],
    );
    const first = await dispatchers.start();
    const variables = { name: { field: 'name', default: 'friend' } };
    const objectId = await beginPush(service, app, {
      data: { alert: 'Hello {{name}}' },
      variables,
    });
    await service.apns.waitFor(devices / 4);
    await kill(first);
    const sentBefore = service.apns.total;
    expect(sentBefore).toBeLessThan(devices);
    const settled = await settledTokens(app);
    await dispatchers.start();
    expect(await service.untilDone(app, objectId, 90_000)).toMatchObject({
      status: 'done',
      devices,
      outcomes: { sent: devices },
      variables: [{ name: 'name', devices, fallback: devices / 10 }],
    });
    const texts = textsByToken();
    const wrong = named.filter(({ token, name }) => {
      const [text, ...more] = texts.get(token) ?? [];
      return text !== `Hello ${name ?? 'friend'}` || more.length > 0;
    });
    expect(wrong).toEqual([]);
    expect(settled.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
    // Only batches in flight are repeated, and only once.
    expect(service.apns.total - devices).toBeLessThan(sentBefore);
    expect(tokens.filter((token) => service.apns.seen(token) > 2)).toEqual([]);
  });

  test('with quiet hours: waiting devices keep waiting, count once, and get it once at the end', {
    timeout: 120_000,
  }, async () => {
    const app = await iosApp({ quietHours: hoursOfNow() });
    const awake = await addDevicesIn(service, app, awakeZone, 3000);
    const asleep = await addDevicesIn(service, app, 'Etc/UTC', 5000);
    await dispatchers.start();
    const objectId = await beginPush(service, app);
    await service.apns.waitFor(service.apns.total + 300);
    await kill(dispatchers.latest());
    expect(seenBy(awake)).toBeLessThan(awake.length);
    await dispatchers.start();
    const sentToAwake = { outcomes: { sent: awake.length }, quietWaits: asleep.length };
    await expect
      .poll(() => recordOf(app, objectId), { interval: 50, timeout: 90_000 })
      .toMatchObject({ state: 'sending', ...sentToAwake });
    expect(seenBy(asleep)).toBe(0);
    // Killed while only quiet hours delay the push, and once more while it sends at their end.
    await kill(dispatchers.latest());
    await makeDue(service, app, awakeZone);
    await Promise.all([dispatchers.start(), service.apns.waitFor(service.apns.total + 300)]);
    await kill(dispatchers.latest());
    const sentBefore = seenBy(asleep);
    expect(sentBefore).toBeLessThan(asleep.length);
    await dispatchers.start();
    const record = await service.untilDone(app, objectId, 90_000);
    expect(record).toMatchObject({
      devices: 8000,
      outcomes: { sent: 8000 },
      quietWaits: asleep.length,
    });
    expect([...awake, ...asleep].filter((token) => service.apns.seen(token) === 0)).toEqual([]);
    expect(seenBy(asleep) - asleep.length).toBeLessThanOrEqual(sentBefore);
  });
});
