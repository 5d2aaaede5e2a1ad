import type { Handle } from '../../shared/db/pool.ts';
import { claimFailures } from '../../shared/db/tables/pushes/reports/redrives.ts';
import { findPlanned } from '../../shared/db/tables/pushes/starts/local-starts.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { LocalStart } from './local-start.ts';
import type { TargetPage } from './pages.ts';

/**
 * Claims the recipients of a page for a redrive, in the transaction that writes their batches: no other redrive, and no
 * repeat after a crash, takes them too. Returns the page without those that are claimed already. A page of any other push
 * stays as it is.
 */
export async function claimPage(tx: Handle, push: Push, page: TargetPage): Promise<TargetPage> {
  const { redrive } = push.pushOrder;
  if (!redrive || page.size === 0) return page;
  const all = [...page.idsByTraits.values()].flat();
  const claimed = new Set(await claimFailures(tx, { ...push, failedId: redrive.pushId }, all));
  return claimed.size === page.size ? page : keepOf(page, (id) => claimed.has(id));
}

/**
 * Leaves out of a page the recipients that an earlier start of a push at local time has taken: such a device changed its time
 * zone since then.
 */
export async function withoutPlanned(
  tx: Handle,
  push: Push,
  { page, start }: { page: TargetPage; start: Pick<LocalStart, 'after'> },
): Promise<TargetPage> {
  if (start.after === null || page.size === 0) return page;
  const all = [...page.idsByTraits.values()].flat().sort((one, other) => one - other);
  const planned = new Set(await findPlanned(tx, push, all));
  return planned.size === 0 ? page : keepOf(page, (id) => !planned.has(id));
}

function keepOf(page: TargetPage, isKept: (id: number) => boolean): TargetPage {
  const idsByTraits = new Map<string, number[]>();
  let size = 0;
  for (const [traits, ids] of page.idsByTraits) {
    const own = ids.filter(isKept);
    size += own.length;
    if (own.length > 0) idsByTraits.set(traits, own);
  }
  return { ...page, size, idsByTraits };
}
