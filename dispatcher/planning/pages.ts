import type { TargetRow } from '../../shared/query/targets/targets.ts';
import { firstBatchSize } from './batches.ts';

/**
 * Installations of one page, which one transaction writes. Up to three pages of each planning are in memory: one that is
 * being written, the next one, and one that is being read.
 */
export const pageSize = 5000;

/** Installations of the first page of a push: one more than the planning job itself delivers. */
export const firstRows = firstBatchSize + 1;

/**
 * Marks the last page; an empty result is one empty last page. The first page of a fresh push does not wait for the second
 * one, so that sending begins at once: its last row, which shows that there are more, goes to the next page.
 */
export async function* withLast(
  pages: AsyncGenerator<TargetRow[]>,
  isFresh: boolean,
): AsyncGenerator<{ page: TargetRow[]; isLast: boolean }> {
  let held: TargetRow[] | undefined;
  let carried: TargetRow[] = [];
  let isFirst = isFresh;
  for await (const page of pages) {
    if (isFirst && page.length === firstRows) {
      carried = page.splice(firstBatchSize);
      yield { page, isLast: false };
    } else {
      if (held) yield { page: held, isLast: false };
      held = carried.length > 0 ? [...carried, ...page] : page;
      carried = [];
    }
    isFirst = false;
  }
  yield { page: held ?? carried, isLast: true };
}
