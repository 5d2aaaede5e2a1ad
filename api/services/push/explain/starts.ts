import type { Handle } from '../../../../shared/db/pool.ts';
import { countZones } from '../../../../shared/db/tables/pushes/starts/local-starts.ts';
import { type ForecastText, textOf } from '../../../../shared/domain/admin/forecast-texts.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { lateMs, startsOf } from '../../../../shared/domain/pushes/local-time.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { Params, targetCondition } from '../../../../shared/query/targets/targets.ts';

/** Start of a push at local time, with the devices whose time it is. */
export interface ForecastStart {
  at: Date;
  devices: number;
  /** Their time is too long past: they would be counted expired. */
  isLate: boolean;
}

/** Counts the devices of a push at local time by their start, the first one first; undefined for any other push. */
export async function forecastStarts(
  tx: Handle,
  app: App,
  { pushOrder, nowMs }: { pushOrder: PushOrder; nowMs: number },
): Promise<ForecastStart[] | undefined> {
  const { local } = pushOrder;
  if (!local) return undefined;
  const params = new Params();
  const text = targetCondition(app, pushOrder, { params, nowMs });
  const groups = await countZones(tx, { text, values: params.values });
  const starts = startsOf(
    local,
    groups.map(({ zone }) => zone),
    app.options.defaultTimeZone,
  );
  const devices = new Map<number, number>();
  for (const group of groups) {
    // Names that are no time zones are together under null.
    const ms = starts.get(group.zone) ?? starts.get(null) ?? nowMs;
    devices.set(ms, (devices.get(ms) ?? 0) + group.devices);
  }
  return [...devices]
    .sort(([one], [other]) => one - other)
    .map(([ms, n]) => ({ at: new Date(ms), devices: n, isLate: ms <= nowMs - lateMs }));
}

/** Returns a limit for the devices whose time is too long past. */
export function lateTexts(starts: readonly ForecastStart[]): ForecastText[] {
  const late = starts.filter(({ isLate }) => isLate).reduce((sum, { devices }) => sum + devices, 0);
  return late === 0 ? [] : [textOf('localTimePassed', { devices: late })];
}
