import { hourMs, systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { TestService } from '../service.ts';
import { changeDevices, startJobs } from '../tables.ts';

/** Time zone in which the quiet hours of `hoursOfNow` are long over. */
export const awakeZone = 'GMT+06:00';

/** Returns quiet hours in UTC that started one hour ago and end in two hours. */
export function hoursOfNow(): string {
  const at = (hours: number) =>
    new Date(systemClock.now() + hours * hourMs).toISOString().slice('2026-12-01T'.length, 16);
  return `${at(-1)}-${at(2)}`;
}

type Service = Pick<TestService, 'db' | 'addIosInstallations'>;

/** Adds iOS devices in a time zone. Returns their tokens. */
export async function addDevicesIn(
  service: Service,
  app: App,
  zone: string | null,
  count = 1,
): Promise<string[]> {
  const tokens = await service.addIosInstallations(app, count);
  await changeDevices(service.db, app, { timeZone: zone }, tokens);
  return tokens;
}

/**
 * Makes the jobs of the waiting batches due, as after a delay. `zone` moves them to a time zone
 * without quiet hours now.
 */
export async function makeDue(
  { db }: Pick<Service, 'db'>,
  app: Pick<App, 'appId'>,
  zone?: string,
): Promise<void> {
  await db.query(
    `UPDATE push_batch
      SET not_before = NULL, quiet = CASE WHEN $2 = '' THEN quiet ELSE split_part(quiet, ' ',
        1) || ' ' || $2 END
      WHERE app_id = $1 AND NOT is_settled`,
    [app.appId, zone ?? ''],
  );
  await startJobs(db, app);
}
