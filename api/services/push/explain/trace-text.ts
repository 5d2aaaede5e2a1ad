import type {
  TracedBatch,
  TracedDevice,
  TracedFailure,
} from '../../../../shared/db/tables/push-reports.ts';
import { type GatewayFailure, hasAnswered } from '../../../../shared/domain/breaker.ts';
import type { Outcome } from '../../../../shared/domain/outcome.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { withStatus } from '../../../../shared/domain/reasons.ts';
import {
  type TextParams,
  type TraceText,
  trace as textOf,
} from '../../../../shared/domain/texts/texts.ts';
import type { Clause } from '../../../../shared/query/targets/targets.ts';

/**
 * State of a message for the device channel:
 *
 * - `waiting`: in the inbox.
 * - `acknowledged`: acknowledged and deleted.
 * - `expired`: in the inbox after its expiry.
 * - `gone`: deleted, and it is unknown whether it was acknowledged. Either the push has expired, or
 *   newer messages evicted some of its messages.
 */
export type InboxState = 'waiting' | 'acknowledged' | 'expired' | 'gone';

/** Facts of a push and a device from which the text is written. */
export interface PushTrace {
  push: Push;
  clause: Clause | undefined;
  device: TracedDevice | undefined;
  route: { connector: string; profile: string; problem?: string };
  batch: TracedBatch | undefined;
  outcome: Outcome | null;
  failure: TracedFailure | undefined;
  inbox: InboxState | null;
  gatewayFailure: GatewayFailure | undefined;
  validityDays: number;
}

/** Returns whether the device is a target that is not planned yet. */
export const isAhead = (trace: Omit<PushTrace, 'validityDays'>): boolean =>
  trace.outcome === null &&
  !trace.batch &&
  !trace.clause &&
  trace.push.state !== 'cancelled' &&
  trace.push.state !== 'failed' &&
  !isPassed(trace);

/** Returns whether planning has passed the device. */
function isPassed({ push, device }: Pick<PushTrace, 'push' | 'device'>): boolean {
  // The cursor of a push at local time belongs to one start.
  const { local } = push.pushOrder;
  return push.isPlanned || (!local && device !== undefined && device.id <= push.plannedThrough);
}

/** Describes in one or two sentences what happened between a device and a push. */
export function traceTexts(trace: PushTrace): TraceText[] {
  if (trace.outcome !== null) return outcomeTexts(trace, trace.outcome);
  if (trace.batch) return pendingTexts(trace, trace.batch);
  return unmatchedTexts(trace);
}

function outcomeTexts(trace: PushTrace, outcome: Outcome): TraceText[] {
  const { failure, device, inbox, push } = trace;
  const until = push.expiresAt.toISOString();
  if (outcome === 'sent' && inbox === 'gone' && push.displaced > 0)
    return [textOf('inboxGoneOrDisplaced', { until, devices: push.displaced })];
  if (outcome === 'sent' && inbox) return [textOf(inboxCodes[inbox], { until })];
  const deleted = device ? [] : [textOf('deleted')];
  const params = {
    ...routeOf(trace),
    why: failure ? failureText(failure) : null,
    at: timeOf(trace),
  };
  if (outcome === 'sent') return [textOf('handedOver', params), ...repeatTexts(trace), ...deleted];
  return [textOf(codeOf(outcome, failure), params), ...deleted];
}

const inboxCodes = {
  waiting: 'inboxWaiting',
  acknowledged: 'inboxAcknowledged',
  expired: 'inboxExpired',
  gone: 'inboxGone',
} as const satisfies Record<InboxState, TraceText['code']>;

function codeOf(
  outcome: Exclude<Outcome, 'sent'>,
  failure: TracedFailure | undefined,
): TraceText['code'] {
  if (outcome === 'invalid_token') return 'invalidToken';
  if (outcome !== 'failed') return outcome;
  return failure && failure.status > 0 ? 'refused' : 'unsendable';
}

/** Mentions requests without a response. Their messages may have arrived too. */
function repeatTexts({ batch }: PushTrace): TraceText[] {
  const times = batch?.unanswered ?? 0;
  if (times === 0) return [];
  return [times === 1 ? textOf('repeatedOnce') : textOf('repeatedTimes', { times })];
}

const routeOf = ({ route }: PushTrace): TextParams => ({
  connector: route.connector,
  profile: route.connector === 'channel' || route.profile === '' ? null : route.profile,
});

const failureText = ({ status, reason }: TracedFailure): string =>
  status > 0 ? withStatus(status, reason) : reason;

const timeOf = ({ failure, batch }: PushTrace): string | null =>
  (failure?.createdAt ?? batch?.settledAt)?.toISOString() ?? null;

function pendingTexts(trace: PushTrace, batch: TracedBatch): TraceText[] {
  const { state } = trace.push;
  const params = { ...routeOf(trace), state, times: batch.attempt };
  const tried = batch.attempt === 1 ? 'pendingTriedOnce' : 'pendingTried';
  const code =
    state === 'cancelled' ? 'pendingCancelled' : batch.attempt > 0 ? tried : 'pendingWaiting';
  return [textOf(code, params), ...waitTexts(trace, batch)];
}

/** Explains why the device waits: its gateway is unreachable, or the last attempt failed. */
function waitTexts(
  { gatewayFailure }: PushTrace,
  { connector, lastReason }: TracedBatch,
): TraceText[] {
  if (gatewayFailure) {
    const code = hasAnswered(gatewayFailure.reason) ? 'gatewayRefuses' : 'gatewaySilent';
    return [
      textOf(code, { connector, why: gatewayFailure.reason, at: gatewayFailure.at.toISOString() }),
    ];
  }
  return lastReason === null ? [] : [textOf('lastTry', { why: lastReason })];
}

function unmatchedTexts(trace: PushTrace): TraceText[] {
  const { push, device, clause } = trace;
  if (push.state === 'cancelled') return [textOf('cancelledBefore')];
  if (push.state === 'failed') return [textOf('failedWhole', { why: push.error })];
  if (clause)
    return [
      textOf(isPassed(trace) ? 'notMatched' : 'willNotMatch', {
        because: clauseText(trace, clause),
      }),
    ];
  if (!isPassed(trace)) {
    const { problem } = trace.route;
    const params = { ...routeOf(trace), state: push.state };
    return [
      problem === undefined
        ? textOf('notYet', params)
        : textOf('notYetUnsendable', { ...params, why: problem }),
    ];
  }
  if (device && device.created_at > push.createdAt)
    return [textOf('registeredLater', { at: device.created_at.toISOString() })];
  const saved = device ? [textOf('savedLast', { at: device.updated_at.toISOString() })] : [];
  return [textOf('wouldMatchNow'), ...saved];
}

function clauseText({ device, validityDays }: PushTrace, clause: Clause): TraceText {
  switch (clause.kind) {
    case 'where':
    case 'channels':
    case 'rule':
      return textOf('unmetCondition', { clause: clause.text });
    case 'devices':
      return textOf('unlisted', { clause: clause.text });
    case 'valid':
      return textOf('invalidDevice');
    case 'fresh':
      return textOf('staleDevice', {
        at: device?.updated_at.toISOString() ?? null,
        days: validityDays,
      });
  }
}
