import type { TargetRow } from '../../shared/query/targets/targets.ts';
import { firstBatchSize } from './batches.ts';

/**
 * Installations of one page, which one transaction writes. Up to three pages of each planning are in memory: one that is
 * being written, the next one, and one that is being read.
 */
export const pageSize = 5000;

/**
 * Marks the last page; an empty result becomes one empty last page. The first page of a fresh push does not wait for the
 * second one, so that sending begins at once: a full one, of as many as the planning job itself delivers, counts as not the last, and the last one may be empty.
 */
export async function* withLast(
  pages: AsyncGenerator<TargetRow[]>,
  isFresh: boolean,
): AsyncGenerator<{ page: TargetRow[]; isLast: boolean }> {
  let held: TargetRow[] | undefined;
  let isFirst = isFresh;
  for await (const page of pages) {
    if (held) yield { page: held, isLast: false };
    held = undefined;
    if (isFirst && page.length === firstBatchSize) yield { page, isLast: false };
    else held = page;
    isFirst = false;
  }
  yield { page: held ?? [], isLast: true };
}
