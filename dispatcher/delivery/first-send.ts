import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import { pushBeganAtMs } from '../../shared/domain/pushes/record.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';

/** What the first send of a push waited for: its beginning, the end of the waits of its batch, and that of its job. */
interface Waits {
  began: Pick<BatchSnapshot, 'createdAt' | 'pushTime'>;
  batch: Pick<BatchSnapshot, 'notBefore' | 'quietUntil'>;
  job: Pick<DeliverJob, 'waitedUntilMs'>;
}

/**
 * Returns how long the service took for a first send, in ms: from the beginning of the push or, if it is later, from the end of
 * the last wait that somebody asked for. An operator would else be woken for the quiet hours of a push.
 */
export function firstSendMs(at: Date, { began, batch, job }: Waits): number {
  const { notBefore, quietUntil } = batch;
  const ends = [notBefore?.at.getTime(), quietUntil?.getTime(), job.waitedUntilMs].map((ms) => ms ?? 0);
  return Math.max(0, at.getTime() - Math.max(pushBeganAtMs(began), ...ends));
}

/**
 * Saves the time of the first send of a push, beside the sending, which it does not delay. Does nothing for a push that
 * has one. Never rejects: the batch is on its way, and the next one saves its own time.
 */
export async function saveFirstSend(deps: DispatcherDeps, { ids, stored }: BatchInWork): Promise<void> {
  if (stored.firstSentAt) return;
  const at = new Date(deps.clock.now());
  try {
    if (!(await deps.queries.markFirstSend({ appId: ids.appId, id: ids.pushId, at }))) return;
  } catch (error) {
    deps.log.warn({ err: error, push: ids.pushId }, 'could not save the time of the first send');
    return;
  }
  deps.metrics.pushFirstSendSeconds.observe(
    firstSendMs(at, { began: stored, batch: stored, job: ids }) / 1000,
  );
}
