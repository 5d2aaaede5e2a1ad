import type { Database } from '../db/pool.ts';
import { countZones, type SqlCondition, type ZoneGroup } from '../db/tables/audience.ts';
import {
  advanceLocalPlanning,
  findPlanned,
  readLocalProgress,
} from '../db/tables/scheduled-pushes.ts';
import { lateMs, nextStartMs, startsOf, wallMsOf } from '../domain/pushes/local-time.ts';
import { reason } from '../domain/reasons.ts';
import { forecast } from '../domain/texts/texts.ts';
import {
  endUnsent,
  idsOf,
  keepTargets,
  type PageOfBatches,
  type PlannedStart,
  type PushRule,
  type Rule,
  type RuledPush,
  type RuleTrace,
  type StartScope,
} from './rule.ts';

/** Timeout of the statement that counts the zones of an audience. */
const countTimeoutMs = 600_000;
/**
 * Tolerated clock difference between processes. A device that was saved up to this long before the
 * call counts as saved after it.
 */
const clockShiftMs = 60_000;

const lateReason = reason('localTimePassed');

/** Selection of the devices of a start, by time zone. */
interface ZoneSelection {
  due: ZoneNames;
  /**
   * Zones whose time came earlier. Only devices saved since then are selected, because they may
   * have changed their zone.
   */
  earlier: ZoneNames & { savedSince: Date };
  /** Names in the audience that are time zones. Any other name counts as no zone. */
  zoneNames: readonly string[];
}

interface ZoneNames {
  names: readonly string[];
  /** True if devices without a known zone are included. */
  hasNone: boolean;
}

/** The start that is being planned. */
interface LocalStart {
  /** Time of the previous start. Null for the first start. */
  after: Date | null;
  /** Time at which its recipients expire. Null if they expire with the push. */
  expiresAt: Date | null;
  /** True if the zones had their time too long before the call. Their devices end as `expired`. */
  isLate: boolean;
}

/**
 * Sends a push to each device at the same time in its own zone (protocol/push.md#local-time). There
 * is one start for each group of zones whose time is the same. The current start is stored with the
 * push, so that planning continues with the same zones after a crash.
 */
export const localTime: PushRule = {
  of(ruled) {
    const { local } = ruled.push.pushOrder;
    return local ? new LocalTimeRule(ruled, local) : undefined;
  },
};

type Local = NonNullable<RuledPush['push']['pushOrder']['local']>;

class LocalTimeRule implements Rule {
  readonly #ruled: RuledPush;
  readonly #local: Local;
  #start: LocalStart = { after: null, expiresAt: null, isLate: false };

  constructor(ruled: RuledPush, local: Local) {
    this.#ruled = ruled;
    this.#local = local;
  }

  async start({ db, scanDb, push, targets }: StartScope): Promise<PlannedStart> {
    const local = this.#local;
    const { after, at: storedAt, nowMs } = await readLocalProgress(db, push);
    // Zones whose time is too long ago form a separate start.
    const lateUntilMs = push.createdAt.getTime() - lateMs;
    const at = storedAt ?? new Date(lateUntilMs);
    const rest = { isLater: after !== null, part: null, next: null };
    const unused = () => Promise.resolve(false);
    if (at.getTime() > nowMs) return { ...rest, waitsUntil: at, advance: unused };
    const starts = this.#startsOf(await zonesOf(scanDb, targets));
    const window = {
      afterMs: after?.getTime() ?? Number.NEGATIVE_INFINITY,
      atMs: at.getTime(),
      lateUntilMs,
    };
    const zones = selectZones(starts, window, new Date(push.createdAt.getTime() - clockShiftMs));
    const nextMs = nextStartMs(wallMsOf(local), {
      afterMs: at.getTime(),
      nowMs,
      starts: [...starts.values()],
    });
    const next = nextMs === null ? null : new Date(nextMs);
    const expiresAt =
      local.lifeSeconds === null ? null : new Date(at.getTime() + local.lifeSeconds * 1000);
    this.#start = { after, expiresAt, isLate: storedAt === null };
    return {
      isLater: after !== null,
      part: isEmpty(zones) ? null : (add) => zoneCondition(zones, add),
      next,
      advance: (tx, key, step) => advanceLocalPlanning(tx, key, { ...step, storedAt, at, next }),
    };
  }

  /**
   * Skips devices that an earlier start has taken. They changed their time zone after that start.
   */
  claim: Rule['claim'] = async (tx, push, page) => {
    if (this.#start.after === null || page.size === 0) return page;
    const planned = new Set(await findPlanned(tx, push, idsOf(page)));
    return planned.size === 0 ? page : keepTargets(page, (id) => !planned.has(id));
  };

  batches: Rule['batches'] = (_tx, _push, { batches, unsent }): PageOfBatches => {
    const { isLate, expiresAt } = this.#start;
    if (!isLate) return { batches: batches.map((batch) => ({ ...batch, expiresAt })), unsent };
    const late = batches.map((batch) => endUnsent(batch, 'expired', lateReason));
    return { batches: [], unsent: [...unsent, ...late] };
  };

  tally: Rule['tally'] = (_page, size) => {
    const timing = this.#start.isLate ? 'late' : 'due';
    return [{ metric: 'localRecipients', labels: { timing }, recipients: size }];
  };

  /** Counts the devices by their start, earliest first. */
  forecast: Rule['forecast'] = async ({ tx, targets }) => {
    const { nowMs } = this.#ruled;
    const groups = await countZones(tx, targets);
    const starts = this.#startsOf(groups);
    const devices = new Map<number, number>();
    for (const group of groups) {
      // Names that are not time zones are grouped under null.
      const ms = starts.get(group.zone) ?? starts.get(null) ?? nowMs;
      devices.set(ms, (devices.get(ms) ?? 0) + group.devices);
    }
    const listed = [...devices]
      .sort(([one], [other]) => one - other)
      .map(([ms, n]) => ({
        at: new Date(ms).toISOString(),
        devices: n,
        isLate: ms <= nowMs - lateMs,
      }));
    const late = listed.reduce((sum, start) => sum + (start.isLate ? start.devices : 0), 0);
    return {
      limits: late === 0 ? [] : [forecast('localTimePassed', { devices: late })],
      members: { starts: listed },
    };
  };

  /** Explains when the push is sent to the device. */
  explain({ device, isAhead }: RuleTrace) {
    if (!device || !isAhead) return { texts: [] };
    const { app, nowMs } = this.#ruled;
    const [[zone, startMs] = []] = this.#startsOf([{ zone: device.time_zone }]);
    if (startMs === undefined) return { texts: [] };
    const code = startMs > nowMs ? ('localStart' as const) : ('localStartPassed' as const);
    const params = {
      at: new Date(startMs).toISOString(),
      time: this.#local.time,
      zone: zone ?? this.#local.zone ?? app.options.defaultTimeZone,
    };
    return { texts: [{ code, params }] };
  }

  /** Returns the time of the push in each zone. The key null means devices without a known zone. */
  #startsOf(groups: readonly Pick<ZoneGroup, 'zone'>[]): Map<string | null, number> {
    const names = groups.map(({ zone }) => zone);
    return startsOf(this.#local, names, this.#ruled.app.options.defaultTimeZone);
  }
}

const zonesOf = (database: Database, targets: SqlCondition): Promise<ZoneGroup[]> =>
  database.transaction((tx) => countZones(tx, targets), {
    isSnapshot: true,
    statementTimeoutMs: countTimeoutMs,
  });

function selectZones(
  starts: ReadonlyMap<string | null, number>,
  { afterMs, atMs, lateUntilMs }: { afterMs: number; atMs: number; lateUntilMs: number },
  savedSince: Date,
): ZoneSelection {
  const between = (fromMs: number, throughMs: number) => {
    const found = [...starts]
      .filter(([, ms]) => ms > fromMs && ms <= throughMs)
      .map(([name]) => name);
    return { names: found.filter((name) => name !== null), hasNone: found.includes(null) };
  };
  const zoneNames = [...starts.keys()].filter((name) => name !== null);
  const earlier = between(Math.max(lateUntilMs, atMs - lateMs), afterMs);
  return { due: between(afterMs, atMs), earlier: { ...earlier, savedSince }, zoneNames };
}

/** Returns whether a selection contains no device. */
const isEmpty = ({ due, earlier }: ZoneSelection): boolean =>
  [due, earlier].every(({ names, hasNone }) => names.length === 0 && !hasNone);

/** Returns the condition over `installation` for a selection that is not empty. */
function zoneCondition(
  { due, earlier, zoneNames }: ZoneSelection,
  add: (value: unknown) => string,
): string {
  const inZones = ({ names, hasNone }: ZoneNames): string[] => [
    ...(names.length > 0 ? [`time_zone = ANY(${add([...names])}::text[])`] : []),
    ...(hasNone
      ? [`time_zone IS NULL OR NOT time_zone = ANY(${add([...zoneNames])}::text[])`]
      : []),
  ];
  const moved = inZones(earlier);
  if (moved.length === 0) return `(${inZones(due).join(' OR ')})`;
  const since = add(earlier.savedSince);
  const saved = `(${moved.join(' OR ')}) AND (updated_at >= ${since} OR imported_at >= ${since})`;
  return `(${[...inZones(due), `(${saved})`].join(' OR ')})`;
}
