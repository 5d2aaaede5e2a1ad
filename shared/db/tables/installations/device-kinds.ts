import type { Handle } from '../../pool.ts';
import { AppStatement } from '../../sharding.ts';

/** Devices of one type of an app, or of one vendor among them. */
export interface DeviceKind {
  appId: string;
  deviceType: string;
  /** Canonical label; null for the devices of all vendors and of none. */
  vendor: string | null;
}

/** `min` makes the planner use the index on the types: for EXISTS it may prefer a scan that ends at the first row. */
const existing = new AppStatement(
  4,
  (
    andApp,
  ) => `SELECT k.place FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (app_id, device_type, vendor, place)
    WHERE CASE WHEN k.vendor IS NULL
               THEN (SELECT min(device_type) FROM installation
                      WHERE app_id = k.app_id${andApp('installation')} AND device_type >= k.device_type) = k.device_type
               ELSE (SELECT min(vendor) FROM installation
                      WHERE app_id = k.app_id${andApp('installation')} AND device_type = k.device_type AND vendor >= k.vendor) = k.vendor END`,
  { isPrepared: true },
);

/** Tells for each kind whether there is a device of it, with one index look-up, whatever the number of devices. */
export async function haveDevices(db: Handle, kinds: readonly DeviceKind[]): Promise<boolean[]> {
  const parts = await existing.run<{ place: number }, DeviceKind>(db, kinds, (part) => [
    part.map(({ appId }) => appId),
    part.map(({ deviceType }) => deviceType),
    part.map(({ vendor }) => vendor),
  ]);
  const have = new Set(parts.flatMap(({ part, found }) => found.map(({ place }) => part[place - 1])));
  return kinds.map((kind) => have.has(kind));
}
