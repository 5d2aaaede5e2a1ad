import type { Params } from '../sql/params.ts';

/** Devices by their time zone, as a start of a push at local time takes them. */
export interface ZoneSelection {
  due: ZoneNames;
  /** Zones whose time came before: only devices that were saved since then, and so may have changed their zone. */
  earlier: ZoneNames & { savedSince: Date };
  /** Names of the audience that are time zones: any other name counts as none. */
  known: readonly string[];
}

interface ZoneNames {
  names: readonly string[];
  /** Includes devices without a known zone. */
  hasNone: boolean;
}

/** Tells whether a selection takes no device. */
export const isEmptySelection = ({ due, earlier }: ZoneSelection): boolean =>
  [due, earlier].every(({ names, hasNone }) => names.length === 0 && !hasNone);

/** Returns the condition over `installation` for a selection that is not empty. */
export function zoneCondition({ due, earlier, known }: ZoneSelection, params: Params): string {
  const inZones = ({ names, hasNone }: ZoneNames): string[] => [
    ...(names.length > 0 ? [`time_zone = ANY(${params.add([...names])}::text[])`] : []),
    ...(hasNone ? [`time_zone IS NULL OR NOT time_zone = ANY(${params.add([...known])}::text[])`] : []),
  ];
  const moved = inZones(earlier);
  if (moved.length === 0) return `(${inZones(due).join(' OR ')})`;
  const since = params.add(earlier.savedSince);
  const saved = `(${moved.join(' OR ')}) AND (updated_at >= ${since} OR imported_at >= ${since})`;
  return `(${[...inZones(due), `(${saved})`].join(' OR ')})`;
}
