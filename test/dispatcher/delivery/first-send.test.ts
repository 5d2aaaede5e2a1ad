import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { RunningDispatcher } from '../../../dispatcher/start.ts';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type AppOnGateway, beginPush, createAppOn } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices } from '../../support/tables.ts';

const service = useTestService();
let dispatcher: RunningDispatcher;
const dispatch = () => service.dispatch({ breakers: { coolDownMs: 300 } });
beforeAll(async () => {
  dispatcher = await dispatch();
});
afterEach(() => service.apns.behave());

const poll = { interval: 20, timeout: 60_000 };
const admin = (method: string, path: string, body?: object) =>
  service.api.request(method, `/console/api${path}`, { admin: true, body });

/** Returns the number of measured first sends of the dispatcher and the sum of their seconds. */
async function measured(): Promise<{ count: number; seconds: number }> {
  const { values } = await dispatcher.deps.metrics.pushFirstSendSeconds.get();
  const sumOf = (suffix: string) =>
    values.find(({ metricName }) => metricName?.endsWith(suffix))?.value ?? 0;
  return { count: sumOf('_count'), seconds: sumOf('_sum') };
}

/** Moves the start of an app's pushes ten hours back, as if they had waited that long. */
const age = async ({ appId }: App) => {
  const { rows } = await service.db.query<{ id: number; created: Date; time: Date }>(
    `SELECT id, created_at - interval '10 hours' AS created, push_time - interval '10 hours' AS time
       FROM notification WHERE app_id = $1`,
    [appId],
  );
  for (const { id, created, time } of rows)
    await service.db.query(
      'UPDATE notification SET created_at = $3, push_time = $4 WHERE app_id = $1 AND id = $2',
      [appId, id, created, time],
    );
};

/** Counts the rows of an app that a statement selects. */
const countOf = async ({ appId }: App, text: string): Promise<number> => {
  const { rows } = await service.db.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${text}`, [
    appId,
  ]);
  return rows[0]?.n ?? 0;
};
const jobs = `pgboss.job WHERE data ->> 'appId' = $1 AND state IN ('created', 'retry', 'active')`;
/** Waits until a job of the app is scheduled for later and none is running. */
const untilPostponed = async (app: App) => {
  await expect
    .poll(() => countOf(app, `${jobs} AND start_after > now() + interval '100 ms'`), poll)
    .toBe(1);
  await expect.poll(() => countOf(app, `${jobs} AND state = 'active'`), poll).toBe(0);
};

/** Waits until the planning of the app's push is frozen. */
const untilPlanFrozen = (app: App) =>
  expect.poll(() => countOf(app, 'notification WHERE app_id = $1 AND is_plan_held'), poll).toBe(1);

interface Wait {
  body?: (tokens: string[]) => object;
  /** Runs before the push is sent. */
  before?(on: AppOnGateway): Promise<unknown>;
  /** Resolves when the push waits. */
  begun(on: AppOnGateway, objectId: string): Promise<unknown>;
  /** Ends the wait. */
  end(on: AppOnGateway, objectId: string): Promise<unknown>;
}

const freezeOf = ({ app }: AppOnGateway) => `/apps/${app.appId}/freeze`;
const frozen: Wait = {
  before: (on) => admin('PUT', freezeOf(on), { reason: 'a wrong text' }),
  begun: ({ app }) => untilPlanFrozen(app),
  end: (on) => admin('DELETE', freezeOf(on)),
};
const control = ({ app }: AppOnGateway, objectId: string, verb: string) =>
  admin('POST', `/apps/${app.appId}/notifications/${objectId}/${verb}`);

/** Makes the waiting job of an app due. */
const makeDue = async ({ app: { appId } }: AppOnGateway): Promise<void> => {
  const past = `now() - interval '1 second'`;
  await service.db.query(
    `UPDATE push_batch SET not_before = ${past}, quiet = NULL WHERE app_id = $1`,
    [appId],
  );
  const earlier = `- interval '2 hours'`;
  await service.db.query(
    `UPDATE notification
        SET local_at = local_at ${earlier},
            request = jsonb_set(request, '{local,time}', to_jsonb(
              to_char((request #>> '{local,time}')::timestamp ${earlier},
              'YYYY-MM-DD"T"HH24:MI:SS.MS')))
      WHERE app_id = $1 AND local_at IS NOT NULL`,
    [appId],
  );
  await service.db.query(
    `UPDATE pgboss.job SET start_after = ${past} WHERE data ->> 'appId' = $1 AND state = 'created'`,
    [appId],
  );
};

const timeOf = (ms: number) => new Date(ms).toISOString().slice('2026-12-01T'.length, 16);
const nowMs = systemClock.now();
const oneDevice = ([deviceToken]: string[]) => ({ where: { deviceToken } });
const breaker = ({ id }: AppOnGateway, verb: string) => admin('POST', `/breakers/${id}/${verb}`);

const waits: Record<string, Wait> = {
  'a freeze': frozen,
  'a freeze, to one device': { ...frozen, body: oneDevice },
  'an approval, paused before it is planned': {
    before: ({ app }) =>
      admin('PATCH', `/apps/${app.appId}`, { options: { approvalAboveDevices: 1 } }),
    begun: ({ app }) => untilPlanFrozen(app),
    end: (on, objectId) => control(on, objectId, 'approve'),
  },
  'an open breaker': {
    before: (on) => breaker(on, 'open'),
    begun: ({ app }) => untilPostponed(app),
    end: (on) => breaker(on, 'release'),
  },
  'a pause after it is planned': {
    before: (on) => breaker(on, 'open'),
    async begun(on, objectId) {
      await untilPostponed(on.app);
      await control(on, objectId, 'pause');
      await breaker(on, 'release');
      await makeDue(on);
      await expect
        .poll(() => countOf(on.app, 'push_batch WHERE app_id = $1 AND is_held'), poll)
        .toBe(1);
    },
    end: (on, objectId) => control(on, objectId, 'resume'),
  },
  'quiet hours': {
    body: () => ({ quiet_hours: `${timeOf(nowMs - hourMs)}-${timeOf(nowMs + 2 * hourMs)}` }),
    begun: ({ app }) => untilPostponed(app),
    end: makeDue,
  },
  'its local time': {
    // The first start has devices too. Their time is long past.
    async before({ app, tokens }) {
      await changeDevices(service.db, app, { timeZone: 'Etc/UTC' });
      await changeDevices(service.db, app, { timeZone: 'GMT+06:00' }, tokens.slice(0, 1));
    },
    body: () => ({
      push_time: new Date(nowMs + hourMs).toISOString().slice(0, 16),
      push_time_local: true,
    }),
    begun: ({ app }) =>
      expect
        .poll(
          () => countOf(app, 'notification WHERE app_id = $1 AND local_at > now() AND devices = 1'),
          poll,
        )
        .toBe(1),
    end: makeDue,
  },
};

describe('the time to the first send', () => {
  test.each(Object.entries(waits))(
    'excludes waiting for %s',
    async (_name, { body, before, begun, end }) => {
      const on = await createAppOn(service, null, 2);
      await before?.(on);
      const earlier = await measured();
      const objectId = await beginPush(service, on.app, body?.(on.tokens) ?? {});
      await begun(on, objectId);
      await age(on.app);
      await end(on, objectId);
      expect(Number((await service.untilDone(on.app, objectId)).successes)).toBeGreaterThan(0);
      const { count, seconds } = await measured();
      expect(count - earlier.count).toBe(1);
      expect(seconds - earlier.seconds).toBeLessThan(3600);
    },
  );

  test.each([1, 2])('includes delays by the service itself, with %i devices', async (devices) => {
    const { app, tokens } = await createAppOn(service, null, devices);
    await dispatcher.stack.close();
    const objectId = await beginPush(service, app, devices === 1 ? oneDevice(tokens) : {});
    await age(app);
    dispatcher = await dispatch();
    await service.untilDone(app, objectId);
    expect((await measured()).seconds).toBeGreaterThan(36_000);
  });
});

test('the time of the first send is kept if the push is cancelled then', async () => {
  const on = await createAppOn(service, null, 1);
  const [token = ''] = on.tokens;
  service.apns.misbehave({ kind: 'slow', delayMs: 500 });
  const objectId = await beginPush(service, on.app);
  await expect.poll(() => service.apns.seen(token), poll).toBe(1);
  expect((await control(on, objectId, 'cancel')).status).toBe(200);
  await expect
    .poll(() => countOf(on.app, 'push_batch WHERE app_id = $1 AND is_settled'), poll)
    .toBe(1);
  const saved = 'notification WHERE app_id = $1 AND first_sent_at IS NOT NULL';
  await expect.poll(() => countOf(on.app, saved), poll).toBe(1);
});

test('a push whose first recipients are the probe of a breaker is measured once', async () => {
  const on = await createAppOn(service, null, 60);
  service.apns.misbehave({ kind: 'answer', status: 503 });
  const refused = await beginPush(service, on.app, { data: { alert: 'refused' } });
  const stateOf = async () => {
    const { body } = await admin('GET', '/breakers');
    return body.results.find(({ id }: { id: string }) => id === on.id)?.state;
  };
  await expect.poll(stateOf, poll).toBe('open');
  await control(on, refused, 'cancel');
  await service.untilDone(on.app, refused);
  await expect.poll(stateOf, poll).toBe('half-open');
  service.apns.behave();
  const earlier = await measured();
  const objectId = await beginPush(service, on.app);
  expect(await service.untilDone(on.app, objectId)).toMatchObject({ successes: 60 });
  expect((await measured()).count - earlier.count).toBe(1);
});
