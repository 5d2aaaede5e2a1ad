import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { query } from '../../../shared/db/query.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { areDatabasesSharded } from '../../support/database.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeBatches, deleteRows, readPush } from '../../support/tables.ts';

let vendors: AllVendors;
let dispatcher: RunningDispatcher;

const service = useTestService();
beforeAll(async () => {
  vendors = await startVendors(service, { keptRequests: 10_000 });
  dispatcher = await service.dispatch();
});
afterAll(async () => {
  await vendors?.close();
});
afterEach(() => {
  for (const gateway of Object.values(vendors.gateways)) {
    gateway.behave();
    gateway.forget();
  }
});

interface Prepared {
  app: App;
  addresses: string[];
}

/**
 * Creates an app with devices of one gateway. `more` is added to its profile, `options` to the app.
 */
async function prepare(
  connector: ConnectorId,
  count: number,
  more: object = {},
  options: object = {},
): Promise<Prepared> {
  const app = await service.api.createApp({ hybridPush: true, ...options });
  await vendors.put(app, vendors.instance(connector), more);
  return { app, addresses: await vendors.add(app, connector, count) };
}

const push = async ({ app }: Prepared, data: object): Promise<Record<string, unknown>> =>
  service.untilDone(app, await beginPush(service, app, { data }));

const admin = async (app: App, path: string) =>
  (
    await service.api.request('GET', `/console/api/apps/${app.appId}/notifications/${path}`, {
      admin: true,
    })
  ).body;

/** Returns the sum of all metrics with this prefix. */
async function sumOf(beginning: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${dispatcher.metricsPort}/metrics`);
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith(beginning));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

const repeatedOf = (connector: string) =>
  sumOf(`carillon_recipients_repeated_total{connector="${connector}"`);
/** Returns the number of requests without a response. */
const unansweredOf = (connector: string) =>
  sumOf(`carillon_gateway_responses_total{connector="${connector}",status="0"`);

/** Nine connections break with all of their streams, each after about 200 requests. */
const nineDisconnects = { kind: 'disconnect', fraction: 1 / 200, count: 9 } as const;
const devices = 2000;

describe('connections that break nine times in a push to 2,000 devices', {
  timeout: 120_000,
}, () => {
  test('lose no recipient of APNs', async () => {
    const { apns } = vendors.gateways;
    const prepared = await prepare('apns', devices);
    const before = { repeated: await repeatedOf('apns'), unanswered: await unansweredOf('apns') };
    apns.misbehave(nineDisconnects);
    const record = await push(prepared, { alert: 'Hello' });
    expect(record).toMatchObject({
      status: 'done',
      devices,
      successes: devices,
      outcomes: { sent: devices },
    });
    expect(prepared.addresses.filter((token) => apns.seen(token) === 0)).toEqual([]);
    // Every device with two requests is a repeat. A request in flight during a break may have
    // arrived only once.
    const repeats = Number(record.repeats);
    expect(repeats).toBeGreaterThanOrEqual(Math.max(9, apns.total - devices));
    expect((await unansweredOf('apns')) - before.unanswered).toBe(repeats);
    expect((await repeatedOf('apns')) - before.repeated).toBe(repeats);
    expect((await admin(prepared.app, `${record.objectId}/progress`)).repeats).toBe(repeats);
    const ids = new Set(apns.requests.map(({ headers }) => headers['apns-collapse-id']));
    expect([...ids]).toEqual([record.objectId]);
  });

  test('lose no recipient of FCM', async () => {
    const { fcm } = vendors.gateways;
    const prepared = await prepare('fcm', devices);
    fcm.misbehave(nineDisconnects);
    const record = await push(prepared, { alert: 'Hello' });
    expect(record).toMatchObject({
      status: 'done',
      devices,
      successes: devices,
      outcomes: { sent: devices },
    });
    expect(prepared.addresses.filter((token) => fcm.seen(token) === 0)).toEqual([]);
    expect(Number(record.repeats)).toBeGreaterThanOrEqual(Math.max(9, fcm.total - devices));
    expect(await unansweredOf('fcm')).toBe(record.repeats);
    const messages = fcm.requests.map(({ body }) => JSON.parse(body.toString()).message);
    expect([...new Set(messages.map(({ android }) => android.notification.tag))]).toEqual([
      record.objectId,
    ]);
    expect(messages.some(({ android }) => 'collapse_key' in android)).toBe(false);
    expect(fcm.violations).toEqual([]);
  });
});

/** Ids by which a device or gateway recognizes a repeated message. */
const idsOnTheWire: [
  ConnectorId,
  'huawei' | 'xiaomi' | 'meizu' | 'oppo' | 'vivo' | 'honor',
  RegExp,
][] = [
  ['vendor_a', 'huawei', /"tag":"(\w+)"/],
  ['vendor_b', 'xiaomi', /extra\.jobkey=(\w+)/],
  ['vendor_c', 'meizu', /"notifyKey":"(\w+)"/],
  ['vendor_d', 'oppo', /"app_message_id":"(\w+)"/],
  ['vendor_e', 'vivo', /"notifyId":(\d+)/],
  ['vendor_f', 'honor', /"tag":"(\w+)"/],
];

describe('if a connection is reset after the request was written', { timeout: 60_000 }, () => {
  test.each(idsOnTheWire)(
    '%s: the message is sent again with the same id',
    async (connector, name, pattern) => {
      const gateway = vendors.gateways[name];
      const prepared = await prepare(connector, 1);
      gateway.misbehave({ kind: 'reset', count: 1 });
      const record = await push(prepared, { alert: '明天上午十点开会', title: '日程' });
      expect(record).toMatchObject({ devices: 1, outcomes: { sent: 1 }, repeats: 1 });
      expect(prepared.addresses.map((address) => gateway.seen(address))).toEqual([2]);
      const ids = gateway.requests.map(
        ({ body }) => pattern.exec(decodeURIComponent(body.toString()))?.[1],
      );
      expect(ids[0]).toBeDefined();
      expect(ids).toEqual([ids[0], ids[0]]);
      expect(gateway.violations).toEqual([]);
    },
  );

  test('a hidden repeat counts as an attempt, and the twelfth attempt is the last', async () => {
    const { apns } = vendors.gateways;
    const prepared = await prepare('apns', 1);
    apns.misbehave({ kind: 'reset' });
    const objectId = await beginPush(service, prepared.app, { data: { alert: 'Hello' } });
    const raise = () => changeBatches(service.db, prepared.app, { tries: 11 }, 1);
    // The tries in between would take minutes.
    await expect.poll(raise, { timeout: 15_000, interval: 5 }).toBe(1);
    const record = await service.untilDone(prepared.app, objectId);
    expect(record).toMatchObject({ devices: 1, outcomes: { failed: 1 }, repeats: 1 });
    expect(record.errors).toContain('retries exhausted: stream_reset');
    expect(apns.total).toBe(2);
  });

  test('"why" shows the request without a reply', async () => {
    const prepared = await prepare('apns', 2);
    const [repeated = '', other = ''] = prepared.addresses;
    vendors.gateways.apns.misbehave({ kind: 'reset', count: 1, token: repeated });
    const { objectId } = await push(prepared, { alert: 'Hello' });
    const trace = await admin(prepared.app, `${objectId}/devices/${repeated}`);
    expect(trace).toMatchObject({ outcome: 'sent', repeats: 1 });
    expect(trace.sentence).toContain('An earlier request got no answer');
    const plain = await admin(prepared.app, `${objectId}/devices/${other}`);
    expect(plain).toMatchObject({ outcome: 'sent', repeats: 0 });
    expect(plain.sentence).not.toContain('no answer');
  });
});

describe('a message that the device would show twice', { timeout: 60_000 }, () => {
  const data = { silent: true, k: 1 };

  test('is sent again once by default', async () => {
    const { fcm } = vendors.gateways;
    const prepared = await prepare('fcm', 3);
    fcm.misbehave({ kind: 'reset', count: 2, token: prepared.addresses[0] });
    fcm.misbehave({ kind: 'reset', count: 1, token: prepared.addresses[1] });
    const record = await push(prepared, data);
    expect(record).toMatchObject({ devices: 3, outcomes: { sent: 2, failed: 1 }, repeats: 2 });
    expect(record.errors).toContain('fcm: unknown (1)');
    expect(prepared.addresses.map((address) => fcm.seen(address))).toEqual([2, 2, 1]);
  });

  test('is not sent again if the app chooses so, unless the device hides the repeat', async () => {
    const { apns, fcm } = vendors.gateways;
    const prepared = await prepare('fcm', 1, {}, { unknownOutcome: 'fail' });
    await vendors.put(prepared.app, vendors.instance('apns'));
    expect(prepared.app.options.unknownOutcome).toBe('fail');
    fcm.misbehave({ kind: 'reset', count: 1 });
    const record = await push(prepared, data);
    expect(record).toMatchObject({ devices: 1, outcomes: { failed: 1 }, repeats: 0 });
    expect(record.errors).toContain('fcm: unknown (1)');
    expect(fcm.total).toBe(1);
    await deleteRows(service.db, 'installation', prepared.app);
    await vendors.add(prepared.app, 'apns', 1);
    apns.misbehave({ kind: 'reset', count: 2 });
    expect(await push(prepared, { alert: 'Hello' })).toMatchObject({
      outcomes: { sent: 1 },
      repeats: 2,
    });
    expect(apns.total).toBe(3);
  });

  test('refuses any other value of the option', async () => {
    const { app } = await prepare('fcm', 1);
    const body = { options: { unknownOutcome: 'maybe' } };
    const reply = await service.api.request('PATCH', `/console/api/apps/${app.appId}`, {
      admin: true,
      body,
    });
    expect(reply.status).toBe(400);
    expect(app.options.unknownOutcome).toBe('repeat');
  });
});

/**
 * Makes the database refuse to settle batches of a connector, with this error code, as often as
 * `times` says. Returns the number of refusals so far.
 */
async function refuseToSettle(
  { appId }: App,
  connector: ConnectorId,
  { code, times }: { code: string; times: number },
): Promise<() => Promise<number>> {
  const name = `refusals_${connector}`;
  await service.db.query(`
    CREATE SEQUENCE ${name} MINVALUE 0 START 0;
    CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('${name}') < ${times} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '${code}';
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER ${name} BEFORE UPDATE ON push_batch FOR EACH ROW
      WHEN (NEW.app_id = '${appId}' AND NEW.connector = '${connector}' AND NEW.is_settled)
      EXECUTE FUNCTION ${name}()`);
  onTestFinished(async () => {
    await service.db.query(
      `DROP TRIGGER ${name} ON push_batch; DROP FUNCTION ${name}; DROP SEQUENCE ${name}`,
    );
  });
  return () => query(service.db).number(`SELECT last_value AS n FROM ${name}`);
}

test.skipIf(areDatabasesSharded())(
  'a batch of a small push that cannot be recorded does not repeat the others',
  async () => {
    const { apns, fcm } = vendors.gateways;
    const ofFcm = await prepare('fcm', 1);
    const { app } = ofFcm;
    await vendors.put(app, vendors.instance('apns'));
    const [iphone = ''] = await vendors.add(app, 'apns', 1);
    // A gateway that has answered gets further batches at once.
    expect(await push(ofFcm, { alert: 'First' })).toMatchObject({ successes: 2 });
    const refusals = await refuseToSettle(app, 'fcm', { code: 'P0001', times: 2 });
    apns.misbehave({ kind: 'slow', delayMs: 3000 });
    const objectId = await beginPush(service, app);
    const endOf = async () => {
      // A planning job that has returned to the queue starts at once.
      await service.db.query(
        `UPDATE pgboss.job SET start_after = now() WHERE data ->> 'appId' = $1 AND state = 'retry'`,
        [app.appId],
      );
      return (await readPush(service.db, app, objectId)).state;
    };
    await expect.poll(endOf, { timeout: 30_000 }).toBe('done');
    expect(await refusals()).toBeGreaterThanOrEqual(2);
    expect(fcm.total).toBe(3);
    expect(apns.seen(iphone)).toBe(2);
  },
);

test.skipIf(areDatabasesSharded())(
  'a deadlock while a result is recorded sends nothing again',
  async () => {
    const { apns } = vendors.gateways;
    const prepared = await prepare('apns', 2);
    const refusals = await refuseToSettle(prepared.app, 'apns', { code: '40P01', times: 2 });
    expect(await push(prepared, { alert: 'Hello' })).toMatchObject({
      status: 'done',
      successes: 2,
    });
    expect(await refusals()).toBeGreaterThanOrEqual(2);
    expect(apns.total).toBe(2);
  },
);
