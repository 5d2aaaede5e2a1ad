import { type Profile, Router } from '../../../../connectors/routing.ts';
import { dayMs, hourMs } from '../../../../shared/clock.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countAudience, readPastRate } from '../../../../shared/db/tables/audience.ts';
import { listProfileUse, type ProfileUse } from '../../../../shared/db/tables/gateway-limits.ts';
import {
  listScheduledBefore,
  listScheduledPage,
} from '../../../../shared/db/tables/scheduled-pushes.ts';
import { readUsage } from '../../../../shared/db/tables/usage.ts';
import { meaningOrNull } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { PushOrder, PushTiming } from '../../../../shared/domain/pushes/push.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { type ForecastText, forecast } from '../../../../shared/domain/texts/texts.ts';
import { Params, targetCondition } from '../../../../shared/query/targets/targets.ts';
import { profileKey } from '../../../../shared/rules/admission.ts';
import type { ApiDeps } from '../../deps.ts';
import { type ConnectorShare, splitByConnector } from './audience.ts';

/** Maximum number of scheduled pushes whose devices are counted. */
const maxCounted = 20;
/** Time limit of one count, and of all counts. After it, the other pushes are not counted. */
const countTimeoutMs = 2000;
const totalTimeoutMs = 5000;

/** Current number of devices of an app's pushes that are scheduled until a time. */
export interface ScheduledForecast {
  pushes: number;
  /** Number of pushes whose devices could be counted in time. */
  counted: number;
  devices: number;
  /** Number of devices by `profileKey`. */
  byProfile: Map<string, number>;
}

/** Push with its current number of recipients. */
interface CountedPush {
  push: Push;
  devices: number;
  shares: Map<ConnectorId, ConnectorShare>;
}

/**
 * Counts the recipients of an unplanned push by the connector and profile that would serve them.
 */
async function countPush(
  tx: Handle,
  { app, push, profiles, nowMs }: { app: App; push: Push; profiles: Profile[]; nowMs: number },
): Promise<CountedPush> {
  const params = new Params();
  const text = targetCondition(app, push.pushOrder, { params, nowMs });
  const { groups, devices } = await countAudience(tx, { text, values: params.values });
  return { push, devices, shares: splitByConnector(groups, new Router(app, profiles, push)) };
}

/** Counts the devices of pushes scheduled before `until`, by the profile that would serve them. */
export async function forecastScheduled(
  { appCache, clock, db, queries }: Pick<ApiDeps, 'appCache' | 'clock' | 'db' | 'queries'>,
  app: App,
  until: Date,
): Promise<ScheduledForecast> {
  const { pushes, count } = await listScheduledBefore(db, app.appId, { until, limit: maxCounted });
  const profiles = pushes.length > 0 ? await appCache.profiles(app.appId) : [];
  const forecast: ScheduledForecast = {
    pushes: count,
    counted: 0,
    devices: 0,
    byProfile: new Map(),
  };
  const endMs = clock.monotonicMs() + totalTimeoutMs;
  for (const push of pushes) {
    if (clock.monotonicMs() > endMs) break;
    const inputs = { app, push, profiles, nowMs: clock.now() };
    const options = { timeoutMs: countTimeoutMs };
    const work = queries.read({ app, isMaster: true }, (tx) => countPush(tx, inputs), options);
    // If a count exceeds its time limit, the push is skipped. The forecast reports the number of
    // counted pushes.
    const found = await work.catch(() => undefined);
    if (!found) continue;
    forecast.counted += 1;
    forecast.devices += found.devices;
    for (const [connector, share] of found.shares)
      for (const [profile, devices] of share.profiles) {
        const key = profileKey(connector, profile);
        forecast.byProfile.set(key, (forecast.byProfile.get(key) ?? 0) + devices);
      }
  }
  return forecast;
}

/** Part of the reply with the duration of sending. */
interface DurationEstimate {
  /** Null if the push has no `flow_control`. */
  estimatedSeconds: number | null;
  /** Rate of the estimate, or of the last large push. */
  pace: ForecastText;
}

/**
 * Estimates the duration of sending, assuming that the gateways allow the rate of `flow_control`
 * (protocol/delivery.md#promise-5).
 */
export async function estimateDuration(
  tx: Handle,
  app: App,
  { pushOrder, shares }: { pushOrder: PushOrder; shares: Map<ConnectorId, ConnectorShare> },
): Promise<DurationEstimate> {
  const devices = countServed(shares);
  if (pushOrder.flowControl !== null)
    return {
      estimatedSeconds: Math.ceil(devices / pushOrder.flowControl),
      pace: forecast('paceAsked', { perSecond: pushOrder.flowControl }),
    };
  const past = await readPastRate(tx, app.appId);
  const pace =
    past === undefined
      ? forecast('paceUnknown')
      : forecast('pacePast', { perSecond: Math.round(past), seconds: Math.ceil(devices / past) });
  return { estimatedSeconds: null, pace };
}

/** Counts the devices that have a profile. */
function countServed(shares: Map<ConnectorId, ConnectorShare>): number {
  let devices = 0;
  for (const share of shares.values()) for (const n of share.profiles.values()) devices += n;
  return devices;
}

/** Maximum number of scheduled pushes whose audience is counted. */
const maxScheduled = 5;
/** Maximum number of usage rows: profiles by message class. */
const maxUse = 1000;
/** China is eight hours ahead of UTC all year. */
const chinaOffsetMs = 8 * hourMs;

interface ForecastInputs {
  app: App;
  shares: Map<ConnectorId, ConnectorShare>;
  devices: number;
  profiles: Profile[];
  timing: PushTiming;
  nowMs: number;
}

type Shares = Map<ConnectorId, ConnectorShare>;

/** Returns the day of a time in a zone with this offset from UTC. */
const dayOf = (ms: number, offsetMs: number): string =>
  new Date(ms + offsetMs).toISOString().slice(0, 10);

/**
 * Returns the usage of the day on which a push is sent. The usage consists of the recipients so
 * far, of the pushes scheduled for the day, and of this push. It is compared with the app's daily
 * cap (day in UTC) and listed by gateway (day in China).
 */
export async function readForecast(tx: Handle, inputs: ForecastInputs) {
  const { app, devices, timing, nowMs, shares } = inputs;
  const atMs = timing.pushTime?.getTime() ?? nowMs;
  const [day, chinaDay] = [dayOf(atMs, 0), dayOf(atMs, chinaOffsetMs)];
  const { counted, isLeast } = await countScheduledPushes(tx, inputs, atMs);
  const inDay = counted.filter(({ push }) => dayOf(push.pushTime.getTime(), 0) === day);
  const inChinaDay = counted.filter(
    ({ push }) => dayOf(push.pushTime.getTime(), chinaOffsetMs) === chinaDay,
  );
  const scheduled = inDay.reduce((sum, one) => sum + one.devices, 0);
  const { recipients: used } = await readUsage(tx, app.appId, day);
  const limit = app.options.dailyRecipientCap;
  const left = Math.max(0, limit - used - scheduled);
  const use = await listProfileUse(tx, app.appId, { day: chinaDay, limit: maxUse });
  return {
    scheduledPushes: counted.length,
    scheduledIsLeast: isLeast,
    cap: {
      day,
      zone: 'UTC',
      used,
      scheduled,
      draft: devices,
      limit,
      over: Math.max(0, devices - left),
    },
    quotas: {
      day: chinaDay,
      zone: 'Asia/Shanghai',
      results: quotasOf(
        use,
        inChinaDay.map((one) => one.shares),
        shares,
      ),
    },
  };
}

/** Counts the recipients of the next scheduled pushes that may be sent on the day of `atMs`. */
async function countScheduledPushes(
  tx: Handle,
  { app, profiles, nowMs }: ForecastInputs,
  atMs: number,
): Promise<{ counted: CountedPush[]; isLeast: boolean }> {
  const next = await listScheduledPage(tx, app.appId, { after: null, limit: maxScheduled + 1 });
  const near = next.filter(({ push }) => Math.abs(push.pushTime.getTime() - atMs) < dayMs);
  const counted: CountedPush[] = [];
  for (const { push } of near.slice(0, maxScheduled))
    counted.push(await countPush(tx, { app, push, profiles, nowMs }));
  return { counted, isLeast: next.length > maxScheduled };
}

/** Returns the usage of each gateway and profile that has usage or that a push uses. */
function quotasOf(use: ProfileUse[], scheduled: Shares[], draft: Shares) {
  const useByKey = Map.groupBy(use, ({ connector, profile }) => profileKey(connector, profile));
  const keys = new Set([...useByKey.keys(), ...[draft, ...scheduled].flatMap(keysOf)]);
  return [...keys].sort().flatMap((key) => {
    const [connector = '', profile = ''] = key.split('/');
    // The device channel has no quota.
    if (connector === 'channel') return [];
    const rows = useByKey.get(key) ?? [];
    const closedReason = rows.find((row) => row.closedReason !== null)?.closedReason ?? null;
    const countIn = (shares: Shares) => devicesOf(shares, key);
    return [
      {
        connector,
        profile,
        used: rows.reduce((sum, { recipients }) => sum + recipients, 0),
        scheduled: scheduled.reduce((sum, shares) => sum + countIn(shares), 0),
        draft: countIn(draft),
        closedReason: closedReason && reasonText(closedReason),
        closedMeaning: meaningOrNull(closedReason),
      },
    ];
  });
}

const keysOf = (shares: Shares): string[] =>
  [...shares].flatMap(([connector, { profiles }]) =>
    [...profiles.keys()].map((name) => profileKey(connector, name)),
  );

function devicesOf(shares: Shares, key: string): number {
  for (const [connector, { profiles }] of shares)
    for (const [name, n] of profiles) if (profileKey(connector, name) === key) return n;
  return 0;
}
