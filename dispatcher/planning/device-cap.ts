import type { Handle } from '../../shared/db/pool.ts';
import { chargeDevices } from '../../shared/db/tables/installations/device-days.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { deviceCapOf } from '../../shared/domain/pushes/push-class.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import { endUnsent, type PageOfBatches } from './batches.ts';

/** Reason of recipients that had their pushes of the day. */
const reasonOf = (cap: number): string => `the device has had its ${cap} pushes of the day`;

/**
 * Counts a page towards the limit of pushes per device and day, in the transaction that writes it, so that a repeat after a crash
 * counts nothing twice (protocol/push.md#pushes-per-device-and-day). Recipients beyond the limit end `capped`. Without a limit
 * this does nothing.
 */
export async function capDevices(
  tx: Handle,
  { push, app }: { push: Push; app: App },
  page: PageOfBatches,
): Promise<PageOfBatches> {
  const cap = deviceCapOf(push.pushOrder, app.options);
  if (cap === null || page.batches.length === 0) return page;
  const ids = page.batches.flatMap(({ recipients }) => recipients);
  const granted = new Set(await chargeDevices(tx, push.appId, { ids, cap }));
  if (granted.size === ids.length) return page;
  const capped = { batches: [...page.batches], unroutable: [...page.unroutable] };
  capped.batches = page.batches.flatMap((batch) => {
    const beyond = batch.recipients.filter((id) => !granted.has(id));
    if (beyond.length === 0) return [batch];
    capped.unroutable.push(endUnsent({ ...batch, recipients: beyond }, 'capped', reasonOf(cap)));
    const recipients = batch.recipients.filter((id) => granted.has(id));
    return recipients.length === 0 ? [] : [{ ...batch, recipients }];
  });
  return capped;
}

/** Returns the recipients of a page that had their pushes of the day. */
export const cappedOf = ({ unroutable }: PageOfBatches): number =>
  unroutable.reduce(
    (sum, { batch, outcome }) => sum + (outcome === 'capped' ? batch.recipients.length : 0),
    0,
  );
