import type { Handle } from '../../../../shared/db/pool.ts';
import type { SqlCondition } from '../../../../shared/db/tables/installations/audience.ts';
import { countZones } from '../../../../shared/db/tables/pushes/starts/local-starts.ts';
import { type ForecastText, textOf } from '../../../../shared/domain/admin/forecast-texts.ts';
import type { Text } from '../../../../shared/domain/admin/trace-texts.ts';
import type { App, AppOptions } from '../../../../shared/domain/apps/app.ts';
import { lateMs, startsOf } from '../../../../shared/domain/pushes/local-time.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { quietHoursOf } from '../../../../shared/domain/pushes/push-class.ts';
import { quietEndMs, quietRuleOf } from '../../../../shared/domain/pushes/quiet-hours.ts';
import type { PushTrace } from './trace-text.ts';

/** Devices within their quiet hours at the time of a push. */
type QuietForecast = {
  hours: string;
  waiting: number;
  expired: number;
  ends: { at: string; devices: number }[];
};

interface QuietInputs {
  app: App;
  push: { pushOrder: PushOrder; expiresAt: Date };
  timing: { pushTime: Date | null };
  nowMs: number;
}

/** When a device of a zone is sent to, and until when. */
interface ZoneTimes {
  startMs: number;
  expiresMs: number;
}

/** Returns the times of a push in a zone; undefined where its local time is too long past. */
function timesIn(zone: string | null, { app, push, timing, nowMs }: QuietInputs): ZoneTimes | undefined {
  const { local } = push.pushOrder;
  const wholeMs = push.expiresAt.getTime();
  if (!local) return { startMs: timing.pushTime?.getTime() ?? nowMs, expiresMs: wholeMs };
  const [at = nowMs] = startsOf(local, [zone], app.options.defaultTimeZone).values();
  if (at <= nowMs - lateMs) return undefined;
  const expiresMs = local.lifeSeconds === null ? wholeMs : at + local.lifeSeconds * 1000;
  return { startMs: Math.max(at, nowMs), expiresMs };
}

const defaultZoneOf = ({ local }: PushOrder, appZone: string): string => local?.zone ?? appZone;

/** Counts the devices of a push that would be within their quiet hours; undefined for a push without quiet hours. */
export async function forecastQuiet(
  tx: Handle,
  audience: SqlCondition,
  inputs: QuietInputs,
): Promise<QuietForecast | undefined> {
  const { app, push } = inputs;
  const hours = quietHoursOf(push.pushOrder, app.options);
  if (hours === null) return undefined;
  const defaultZone = defaultZoneOf(push.pushOrder, app.options.defaultTimeZone);
  const waiting = new Map<number, number>();
  let expired = 0;
  for (const { zone, devices } of await countZones(tx, audience)) {
    const times = timesIn(zone, inputs);
    const endMs = times && quietEndMs(quietRuleOf(hours, zone, defaultZone), times.startMs);
    if (times === undefined || endMs === undefined) continue;
    if (times.expiresMs <= endMs) expired += devices;
    else waiting.set(endMs, (waiting.get(endMs) ?? 0) + devices);
  }
  const ends = [...waiting]
    .sort(([one], [other]) => one - other)
    .map(([ms, devices]) => ({ at: new Date(ms).toISOString(), devices }));
  return { hours, waiting: ends.reduce((sum, { devices }) => sum + devices, 0), expired, ends };
}

/** Returns what quiet hours delay, and what they end. */
export function quietTexts(quiet: QuietForecast | undefined): ForecastText[] {
  if (!quiet) return [];
  const { hours, waiting, expired, ends } = quiet;
  const until = ends.at(-1)?.at ?? '';
  return [
    ...(waiting > 0 ? [textOf('quietWaiting', { devices: waiting, hours, until })] : []),
    ...(expired > 0 ? [textOf('quietExpired', { devices: expired, hours })] : []),
  ];
}

type TracedPush = Pick<
  PushTrace,
  'push' | 'device' | 'batch' | 'outcome' | 'clause' | 'defaultZone' | 'nowMs'
>;

/** Tells until when a push waits, waited or would wait for the end of the quiet hours of a device. */
export function quietTraceTexts(trace: TracedPush, options: Pick<AppOptions, 'quietHours'>): Text[] {
  return trace.batch ? waitTexts(trace) : futureTexts(trace, options);
}

const hoursOf = (rule: string): string => rule.slice(0, rule.indexOf(' '));

function waitTexts({ batch, outcome, nowMs }: TracedPush): Text[] {
  if (!batch?.quiet || !batch.quietUntil || (outcome !== null && outcome !== 'sent')) return [];
  const code = outcome === null && batch.quietUntil.getTime() > nowMs ? 'quietWaits' : 'quietWaited';
  return [{ code, params: { at: batch.quietUntil.toISOString(), hours: hoursOf(batch.quiet) } }];
}

function futureTexts(
  { push, device, outcome, clause, defaultZone, nowMs }: TracedPush,
  options: Pick<AppOptions, 'quietHours'>,
): Text[] {
  const hours = quietHoursOf(push.pushOrder, options);
  if (hours === null || !device || outcome !== null || clause || push.isPlanned) return [];
  if (push.state === 'cancelled' || push.state === 'failed') return [];
  const { local } = push.pushOrder;
  const [localMs] = local ? startsOf(local, [device.time_zone], defaultZone).values() : [];
  const startMs = Math.max(localMs ?? push.pushTime.getTime(), nowMs);
  const rule = quietRuleOf(hours, device.time_zone, defaultZoneOf(push.pushOrder, defaultZone));
  const endMs = quietEndMs(rule, startMs);
  if (endMs === undefined) return [];
  return [{ code: 'quietWillWait', params: { at: new Date(endMs).toISOString(), hours } }];
}
