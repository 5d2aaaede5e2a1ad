import { isConnectionFailure } from '../shared/db/limits/database-errors.ts';

/**
 * Runs `work` for one item after the other. If an item fails, the others continue, and the first
 * error is thrown at the end. So the rows of one app cannot stop a background job for all apps.
 * Stops at once if the database is unavailable.
 */
export async function forEachItem<T>(
  items: Iterable<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const item of items) {
    try {
      await work(item);
    } catch (error) {
      errors.push(error);
      if (isConnectionFailure(error)) break;
    }
  }
  if (errors.length > 0) throw errors[0];
}
