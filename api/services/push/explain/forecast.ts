import { type Profile, Router } from '../../../../connectors/routing.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countAudience, readPastRate } from '../../../../shared/db/tables/audience.ts';
import { listScheduledBefore } from '../../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { type ForecastText, forecast } from '../../../../shared/domain/texts/texts.ts';
import { Params, targetCondition } from '../../../../shared/query/targets/targets.ts';
import { profileKey } from '../../../../shared/rules/mass-limit.ts';
import type { ApiDeps } from '../../deps.ts';
import { type ConnectorShare, splitByConnector } from './audience.ts';

/** Scheduled pushes whose devices are counted. */
const maxCounted = 20;
/** Time for one count, and for all of them; pushes beyond it are not counted. */
const countTimeoutMs = 2000;
const totalTimeoutMs = 5000;

/** Devices of the pushes that an app scheduled until a time, as they are now. */
export interface ScheduledForecast {
  pushes: number;
  /** Those whose devices could be counted in time. */
  counted: number;
  devices: number;
  /** Devices by `profileKey`. */
  byProfile: Map<string, number>;
}

/** Recipients of a push as they are now. */
export interface CountedPush {
  push: Push;
  devices: number;
  shares: Map<ConnectorId, ConnectorShare>;
}

/** Counts the recipients of a push that is not planned yet, by the connector and profile that would serve them. */
export async function countPush(
  tx: Handle,
  { app, push, profiles, nowMs }: { app: App; push: Push; profiles: Profile[]; nowMs: number },
): Promise<CountedPush> {
  const params = new Params();
  const text = targetCondition(app, push.pushOrder, { params, nowMs });
  const { groups, devices } = await countAudience(tx, { text, values: params.values });
  return { push, devices, shares: splitByConnector(groups, new Router(app, profiles, push)) };
}

/** Counts the devices of pushes that are scheduled before `until`, by the profile that would serve them. */
export async function forecastScheduled(
  { appCache, clock, db, queries }: Pick<ApiDeps, 'appCache' | 'clock' | 'db' | 'queries'>,
  app: App,
  until: Date,
): Promise<ScheduledForecast> {
  const { pushes, count } = await listScheduledBefore(db, app.appId, { until, limit: maxCounted });
  const profiles = pushes.length > 0 ? await appCache.profiles(app.appId) : [];
  const forecast: ScheduledForecast = { pushes: count, counted: 0, devices: 0, byProfile: new Map() };
  const endMs = clock.monotonicMs() + totalTimeoutMs;
  for (const push of pushes) {
    if (clock.monotonicMs() > endMs) break;
    const inputs = { app, push, profiles, nowMs: clock.now() };
    const terms = { timeoutMs: countTimeoutMs };
    const work = queries.read({ app, isMaster: true }, (tx) => countPush(tx, inputs), terms);
    // A count over its time limit leaves the push out; the forecast says so.
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
  /** Null without `flow_control`. */
  estimatedSeconds: number | null;
  /** Rate of the estimate, or of the last large push; wire name. */
  pace: ForecastText;
}

/** Estimates how long sending takes if the gateways allow the rate of `flow_control` (protocol/delivery.md#promise-5). */
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

/** Counts the devices that a profile serves. */
function countServed(shares: Map<ConnectorId, ConnectorShare>): number {
  let devices = 0;
  for (const share of shares.values()) for (const n of share.profiles.values()) devices += n;
  return devices;
}
