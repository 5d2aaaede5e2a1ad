import { dayMs } from '../clock.ts';
import { countZones } from '../db/tables/audience.ts';
import { addQuietWaits } from '../db/tables/push-reports.ts';
import { zoneOfRoutingKey } from '../db/tables/routing-keys.ts';
import { lateMs, offsetsOf, startsOf } from '../domain/pushes/local-time.ts';
import { quietHoursOf } from '../domain/pushes/push-class.ts';
import { quietEndMs, quietRule, quietRuleOf } from '../domain/pushes/quiet-hours.ts';
import { reason } from '../domain/reasons.ts';
import { forecast as textOf } from '../domain/texts/texts.ts';
import {
  endUnsent,
  type ForecastScope,
  type PageOfBatches,
  type PushRule,
  type Rule,
  type RuledPush,
  type RuleTrace,
  recipientsOf,
} from './rule.ts';

/** Reason of recipients whose push expires during their quiet hours. */
export const quietReason = reason('quietHours');

/**
 * Makes a push wait for the end of each device's quiet hours (protocol/push.md#quiet-hours). If the
 * push expires before that, the recipient ends as `expired`. All recipients of a batch belong to
 * one group of time zones. Delivery calls `quietWait` again, because a batch may be late.
 */
export const quietHours: PushRule = {
  of(ruled) {
    const { app, push, nowMs } = ruled;
    const hours = quietHoursOf(push.pushOrder, app.options);
    if (hours === null) return undefined;
    const zones = new ZoneGroups(defaultZoneOf(ruled), {
      fromMs: nowMs,
      toMs: push.expiresAt.getTime(),
    });
    return {
      readsZones: true,
      group: (routingKey) => ({
        quiet: quietRule(hours, zones.zoneOf(zoneOfRoutingKey(routingKey))),
      }),
      batches: (_tx, _push, page) => delayBatches(ruled, page),
      record: (tx, key, page) => addQuietWaits(tx, key, recipientsOf(page.batches, isWaiting)),
      tally: ({ batches, unsent }) => {
        const expired = unsent.filter(({ failures }) => failures[0]?.reason === quietReason);
        return [
          tally('waiting', recipientsOf(batches, isWaiting)),
          tally('expired', recipientsOf(expired.map(({ batch }) => batch))),
        ];
      },
      forecast: (scope) => forecast(ruled, hours, scope),
      explain: (trace) => ({
        texts: trace.batch ? waitTexts(trace, nowMs) : futureTexts(ruled, hours, trace),
      }),
    } satisfies Rule;
  },
};

/** Returns the zone for devices without a known zone. */
const defaultZoneOf = ({ app, push }: Pick<RuledPush, 'app' | 'push'>): string =>
  push.pushOrder.local?.zone ?? app.options.defaultTimeZone;

/**
 * Returns when a batch with a quiet rule may be sent. Returns undefined if it may be sent now, and
 * `expired` if the push expires before.
 */
export function quietWait(
  quiet: string | null | undefined,
  { nowMs, expiresAt }: { nowMs: number; expiresAt: Date },
): Date | 'expired' | undefined {
  const endMs = quiet ? quietEndMs(quiet, nowMs) : undefined;
  if (endMs === undefined) return undefined;
  return expiresAt.getTime() <= endMs ? 'expired' : new Date(endMs);
}

function delayBatches({ push, nowMs }: RuledPush, page: PageOfBatches): PageOfBatches {
  const delayed: PageOfBatches = { batches: [], unsent: [...page.unsent] };
  for (const batch of page.batches) {
    const until = quietWait(batch.quiet, { nowMs, expiresAt: batch.expiresAt ?? push.expiresAt });
    if (until === undefined) delayed.batches.push(batch);
    else if (until === 'expired') delayed.unsent.push(endUnsent(batch, 'expired', quietReason));
    else delayed.batches.push({ ...batch, notBefore: until, quietUntil: until });
  }
  return delayed;
}

const isWaiting = ({ quietUntil }: { quietUntil?: Date | null }): boolean => Boolean(quietUntil);

const tally = (outcome: string, recipients: number) =>
  ({ metric: 'quietRecipients', labels: { outcome }, recipients }) as const;

/** Maximum number of cached zone names. Devices choose the names. */
const maxRemembered = 10_000;
/**
 * Number of days for which the zones of one batch must have equal offsets. A batch that waits
 * longer may be wrong by a change to or from summer time.
 */
const maxComparedDays = 30;

/**
 * Groups zones that have equal offsets from now until a push expires. A batch then has one time,
 * and there are few small batches: devices choose among some hundred names, which have about forty
 * offsets.
 */
class ZoneGroups {
  readonly #days: number[];
  readonly #defaultZone: string;
  readonly #byName = new Map<string, string>();
  readonly #byOffsets = new Map<string, string>();

  constructor(defaultZone: string, { fromMs, toMs }: { fromMs: number; toMs: number }) {
    const count = Math.min(maxComparedDays, Math.max(1, Math.ceil((toMs - fromMs) / dayMs)));
    this.#days = Array.from({ length: count + 1 }, (_, i) => fromMs + i * dayMs);
    this.#defaultZone = defaultZone;
  }

  /**
   * Returns the zone that names the group of a zone. For no zone or an unknown zone, returns the
   * group of the default zone.
   */
  zoneOf(name: string | null): string {
    const cached = this.#byName.get(name ?? '');
    if (cached !== undefined) return cached;
    const zone = this.#find(name);
    if (this.#byName.size >= maxRemembered) this.#byName.clear();
    this.#byName.set(name ?? '', zone);
    return zone;
  }

  #find(name: string | null): string {
    const offsetAt = name === null ? undefined : offsetsOf(name);
    if (name === null || !offsetAt)
      return name === this.#defaultZone ? name : this.zoneOf(this.#defaultZone);
    const offsets = this.#days.map(offsetAt).join(' ');
    const representative = this.#byOffsets.get(offsets) ?? name;
    this.#byOffsets.set(offsets, representative);
    return representative;
  }
}

/** Time at which a device of a zone gets a push, and time of expiry. */
interface ZoneTimes {
  startMs: number;
  expiresMs: number;
}

/** Returns the times of a push in a zone. Returns undefined if its local time is too long ago. */
function timesIn(
  zone: string | null,
  { app, push, nowMs }: RuledPush,
  pushTime: Date | null,
): ZoneTimes | undefined {
  const { local } = push.pushOrder;
  const wholeMs = push.expiresAt.getTime();
  if (!local) return { startMs: pushTime?.getTime() ?? nowMs, expiresMs: wholeMs };
  const [at = nowMs] = startsOf(local, [zone], app.options.defaultTimeZone).values();
  if (at <= nowMs - lateMs) return undefined;
  const expiresMs = local.lifeSeconds === null ? wholeMs : at + local.lifeSeconds * 1000;
  return { startMs: Math.max(at, nowMs), expiresMs };
}

/**
 * Counts the devices that would be in their quiet hours, and the devices that the push would not
 * reach.
 */
async function forecast(ruled: RuledPush, hours: string, { tx, targets, pushTime }: ForecastScope) {
  const waits = new Map<number, number>();
  let expired = 0;
  for (const { zone, devices } of await countZones(tx, targets)) {
    const times = timesIn(zone, ruled, pushTime);
    const endMs =
      times && quietEndMs(quietRuleOf(hours, zone, defaultZoneOf(ruled)), times.startMs);
    if (times === undefined || endMs === undefined) continue;
    if (times.expiresMs <= endMs) expired += devices;
    else waits.set(endMs, (waits.get(endMs) ?? 0) + devices);
  }
  const ends = [...waits]
    .sort(([one], [other]) => one - other)
    .map(([ms, devices]) => ({ at: new Date(ms).toISOString(), devices }));
  const waiting = ends.reduce((sum, { devices }) => sum + devices, 0);
  const until = ends.at(-1)?.at ?? '';
  return {
    limits: [
      ...(waiting > 0 ? [textOf('quietWaiting', { devices: waiting, hours, until })] : []),
      ...(expired > 0 ? [textOf('quietExpired', { devices: expired, hours })] : []),
    ],
    members: { quietHours: { hours, waiting, expired, ends } },
  };
}

const hoursOf = (rule: string): string => rule.slice(0, rule.indexOf(' '));

function waitTexts({ batch, outcome }: RuleTrace, nowMs: number) {
  if (!batch?.quiet || !batch.quietUntil || (outcome !== null && outcome !== 'sent')) return [];
  const isNow = outcome === null && batch.quietUntil.getTime() > nowMs;
  const params = { at: batch.quietUntil.toISOString(), hours: hoursOf(batch.quiet) };
  return [{ code: isNow ? ('quietWaits' as const) : ('quietWaited' as const), params }];
}

function futureTexts(ruled: RuledPush, hours: string, { push, device, isAhead }: RuleTrace) {
  if (!device || !isAhead) return [];
  const times = timesIn(device.time_zone, ruled, push.pushTime);
  const rule = quietRuleOf(hours, device.time_zone, defaultZoneOf(ruled));
  const endMs = times && quietEndMs(rule, Math.max(times.startMs, ruled.nowMs));
  if (endMs === undefined) return [];
  return [{ code: 'quietWillWait' as const, params: { at: new Date(endMs).toISOString(), hours } }];
}
