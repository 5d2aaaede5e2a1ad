import type { Handle } from '../../shared/db/pool.ts';
import { claimFailures } from '../../shared/db/tables/pushes/reports/redrives.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
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
  if (claimed.size === page.size) return page;
  const idsByTraits = new Map<string, number[]>();
  for (const [traits, ids] of page.idsByTraits) {
    const own = ids.filter((id) => claimed.has(id));
    if (own.length > 0) idsByTraits.set(traits, own);
  }
  return { ...page, size: claimed.size, idsByTraits };
}
