/** Metrics and gateway use of recorded batches. */
import type { ConnectorId } from '../../shared/domain/labels.ts';
import { type OutcomeTotals, outcomes } from '../../shared/domain/outcome.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { DeliverResult, RetryGroup } from '../sending/task.ts';

export function countRecipients(
  { metrics }: DispatcherDeps,
  app: string,
  connector: ConnectorId,
  totals: OutcomeTotals,
): void {
  // All outcomes, so that a share of them can be computed before each has occurred.
  for (const outcome of outcomes) metrics.recipients.inc({ app, connector, outcome }, totals[outcome] ?? 0);
}

/** Counts the recipients that get a retry, and those of a request without an answer by its reason. */
export function countRepeats(
  { metrics }: DispatcherDeps,
  connector: ConnectorId,
  retries: RetryGroup[],
): void {
  for (const { indexes } of retries) metrics.recipientsRetried.inc({ connector }, indexes.length);
  for (const { isRepeat, why } of retries)
    if (isRepeat) for (const { reason } of why) metrics.recipientsRepeated.inc({ connector, reason });
}

/** Counts the requests that the gateway answered and the recipients it accepted, as its own statistics do. */
export function countGatewayUsage(
  { gatewayUsage }: DispatcherDeps,
  appId: string,
  { result, recipients }: { result: DeliverResult; recipients: number },
): void {
  const { connector, profile, calls } = result;
  if (connector === 'channel') return;
  const answered = calls.filter(({ status }) => status > 0);
  const requests = answered.reduce((sum, { count }) => sum + count, 0);
  gatewayUsage.add({ appId, connector, profile }, { requests, recipients });
}

export function countCalls(
  { metrics }: DispatcherDeps,
  { connector, calls, durations }: DeliverResult,
): void {
  for (const { status, reason, count } of calls)
    metrics.gatewayResponses.inc({ connector, status, reason }, count);
  metrics.gatewayRequestSeconds.add(connector, durations);
}
