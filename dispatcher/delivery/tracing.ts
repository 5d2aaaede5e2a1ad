import { findTrace } from '../../shared/db/tables/pushes.ts';
import { contextToContinue, inSpan, isTracing } from '../../shared/process/tracing.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { SentBatch } from '../recording/recorder.ts';

interface PushIds {
  appId: string;
  pushId: number;
}

/**
 * Runs work for a push inside a span that continues the trace of the call that sent the push. With tracing it costs one
 * query by the primary key.
 */
export async function tracePush<T>(
  { db }: Pick<DispatcherDeps, 'db'>,
  name: 'plan' | 'batch',
  { appId, pushId, batchId }: PushIds & { batchId?: number },
  work: () => Promise<T>,
): Promise<T> {
  if (!isTracing()) return work();
  const found = await findTrace(db, appId, pushId);
  const parent = await contextToContinue(async () => found?.traceParent ?? null);
  const attributes = {
    'carillon.app': appId,
    ...(found ? { 'carillon.push': found.objectId } : {}),
    ...(batchId === undefined ? {} : { 'carillon.batch': batchId }),
  };
  return inSpan(name, { kind: 'consumer', attributes, parent }, work);
}

/**
 * Runs the requests of a batch, which a thread sends, inside one span: each request has less than a microsecond for
 * tracing, so the span has their numbers by answer.
 */
export function traceGateway(connector: string, work: () => Promise<SentBatch>): Promise<SentBatch> {
  return inSpan(
    'gateway',
    { kind: 'client', attributes: { 'carillon.connector': connector } },
    async (span) => {
      const sent = await work();
      const calls = sent.result.calls.map(({ status, reason, count }) =>
        `${count} × ${status} ${reason}`.trim(),
      );
      span?.setAttribute('carillon.answers', calls);
      return sent;
    },
  );
}
