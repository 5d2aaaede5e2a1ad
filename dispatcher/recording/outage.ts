import { retryDuringOutage } from '../../shared/db/outage.ts';
import type { Logger } from '../../shared/process/logging.ts';

/** Time after which a result that cannot be recorded is given up: its batch is then taken again. */
const recordPatienceMs = 120_000;

/**
 * Repeats a recording through an outage of the database. Only this process knows the outcomes until they are recorded:
 * without them a restart of PostgreSQL would repeat the whole batch.
 */
export function recordThroughOutage<T>({ log }: { log: Logger }, record: () => Promise<T>): Promise<T> {
  const message = 'database unavailable; outcomes wait to be recorded';
  return retryDuringOutage({ log, message, patienceMs: recordPatienceMs }, record);
}
