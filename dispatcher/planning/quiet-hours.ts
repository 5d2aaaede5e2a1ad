import type { Handle } from '../../shared/db/pool.ts';
import { addQuietWaits } from '../../shared/db/tables/pushes/reports/quiet.ts';
import { quietEndMs } from '../../shared/domain/pushes/quiet-hours.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { DispatcherDeps } from '../deps.ts';
import { quietReason } from '../recording/unsent.ts';
import { endUnsent, type PageOfBatches } from './batches.ts';

const waitsOf = ({ batches }: PageOfBatches): number =>
  batches.reduce((sum, { quietUntil, recipients }) => sum + (quietUntil ? recipients.length : 0), 0);

/**
 * Lets the batches of recipients within their quiet hours wait for the end. Those that expire before it end `expired` at once
 * (protocol/push.md#quiet-hours).
 */
export function holdQuiet(
  { clock }: Pick<DispatcherDeps, 'clock'>,
  push: Push,
  page: PageOfBatches,
): PageOfBatches {
  const nowMs = clock.now();
  const held: PageOfBatches = { batches: [], unroutable: [...page.unroutable] };
  for (const batch of page.batches) {
    const endMs = batch.quiet ? quietEndMs(batch.quiet, nowMs) : undefined;
    const expiresAt = batch.expiresAt ?? push.expiresAt;
    if (endMs === undefined) held.batches.push(batch);
    else if (expiresAt.getTime() <= endMs) held.unroutable.push(endUnsent(batch, 'expired', quietReason));
    else {
      const until = new Date(endMs);
      held.batches.push({ ...batch, notBefore: until, quietUntil: until });
    }
  }
  return held;
}

/** Adds the recipients of a page that wait to those of the push. */
export const addWaitsOf = (tx: Handle, push: Push, page: PageOfBatches): Promise<void> =>
  addQuietWaits(tx, push, waitsOf(page));

/** Counts the recipients of a page that were within their quiet hours. */
export function countQuiet({ metrics }: DispatcherDeps, { appId }: Push, page: PageOfBatches): void {
  const expired = page.unroutable
    .filter(({ failures }) => failures[0]?.reason === quietReason)
    .reduce((sum, { batch }) => sum + batch.recipients.length, 0);
  const waiting = waitsOf(page);
  if (waiting > 0) metrics.quietRecipients.inc({ app: appId, outcome: 'waiting' }, waiting);
  if (expired > 0) metrics.quietRecipients.inc({ app: appId, outcome: 'expired' }, expired);
}
