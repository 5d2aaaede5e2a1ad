import { type Profile, Router } from '../../../../connectors/routing.ts';
import { chinaDay, dayMs, utcDay } from '../../../../shared/clock.ts';
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
import type { PushOrder, PushTiming } from '../../../../shared/domain/pushes/push.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { type ForecastText, forecast } from '../../../../shared/domain/texts/texts.ts';
import { targetsOf } from '../../../../shared/query/targets/targets.ts';
import { profileKey } from '../../../../shared/rules/admission.ts';
import type { ApiDeps } from '../../deps.ts';
import { addTo, devicesByProfile, splitByConnector } from './audience.ts';

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
  /** Number of devices by `profileKey`. */
  byProfile: Map<string, number>;
}

/**
 * Counts the recipients of an unplanned push by the connector and profile that would serve them.
 */
async function countPush(
  tx: Handle,
  { app, push, profiles, nowMs }: { app: App; push: Push; profiles: Profile[]; nowMs: number },
): Promise<CountedPush> {
  const { groups, devices } = await countAudience(tx, targetsOf(app, push.pushOrder, nowMs));
  const shares = splitByConnector(groups, new Router(app, profiles, push));
  return { push, devices, byProfile: devicesByProfile(shares) };
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
    for (const [key, devices] of found.byProfile) addTo(forecast.byProfile, key, devices);
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
  { pushOrder, byProfile }: { pushOrder: PushOrder; byProfile: ReadonlyMap<string, number> },
): Promise<DurationEstimate> {
  // Devices without a profile are not sent to.
  const devices = [...byProfile.values()].reduce((sum, n) => sum + n, 0);
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

/** Maximum number of scheduled pushes whose audience is counted. */
const maxScheduled = 5;
/** Maximum number of usage rows: profiles by message class. */
const maxUse = 1000;

interface ForecastInputs {
  app: App;
  devices: number;
  /** Number of devices by `profileKey`. */
  byProfile: Map<string, number>;
  profiles: Profile[];
  timing: PushTiming;
  nowMs: number;
}

/**
 * Returns the usage of the day on which a push is sent. The usage consists of the recipients so
 * far, of the pushes scheduled for the day, and of this push. It is compared with the app's daily
 * cap (day in UTC) and listed by gateway (day in China).
 */
export async function readForecast(tx: Handle, inputs: ForecastInputs) {
  const { app, devices, timing, nowMs, byProfile } = inputs;
  const atMs = timing.pushTime?.getTime() ?? nowMs;
  const [day, dayInChina] = [utcDay(atMs), chinaDay(atMs)];
  const { counted, isLeast } = await countScheduledPushes(tx, inputs, atMs);
  const inDay = counted.filter(({ push }) => utcDay(push.pushTime.getTime()) === day);
  const inChina = counted.filter(({ push }) => chinaDay(push.pushTime.getTime()) === dayInChina);
  const scheduled = inDay.reduce((sum, one) => sum + one.devices, 0);
  const { recipients: used } = await readUsage(tx, app.appId, day);
  const limit = app.options.dailyRecipientCap;
  const left = Math.max(0, limit - used - scheduled);
  const use = await listProfileUse(tx, app.appId, { day: dayInChina, limit: maxUse });
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
      day: dayInChina,
      zone: 'Asia/Shanghai',
      results: quotasOf(
        use,
        inChina.map((one) => one.byProfile),
        byProfile,
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
  const near = next.filter(({ pushTime }) => Math.abs(pushTime.getTime() - atMs) < dayMs);
  const counted: CountedPush[] = [];
  for (const push of near.slice(0, maxScheduled))
    counted.push(await countPush(tx, { app, push, profiles, nowMs }));
  return { counted, isLeast: next.length > maxScheduled };
}

/** Returns the usage of each gateway and profile that has usage or that a push uses. */
function quotasOf(
  use: ProfileUse[],
  scheduled: ReadonlyMap<string, number>[],
  draft: ReadonlyMap<string, number>,
) {
  const useByKey = Map.groupBy(use, ({ connector, profile }) => profileKey(connector, profile));
  const keys = new Set([
    ...useByKey.keys(),
    ...[draft, ...scheduled].flatMap((one) => [...one.keys()]),
  ]);
  return [...keys].sort().flatMap((key) => {
    const [connector = '', profile = ''] = key.split('/');
    // The device channel has no quota.
    if (connector === 'channel') return [];
    const rows = useByKey.get(key) ?? [];
    const closedReason = rows.find((row) => row.closedReason !== null)?.closedReason ?? null;
    return [
      {
        connector,
        profile,
        used: rows.reduce((sum, { recipients }) => sum + recipients, 0),
        scheduled: scheduled.reduce((sum, one) => sum + (one.get(key) ?? 0), 0),
        draft: draft.get(key) ?? 0,
        closedReason: closedReason && reasonText(closedReason),
        closedMeaning: meaningOrNull(closedReason),
      },
    ];
  });
}
