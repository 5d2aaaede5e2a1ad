import type { TracedBatch, TracedDevice, TracedFailure } from '../../../../shared/db/tables/pushes/traces.ts';
import { type GatewayFailure, gatewayFailureText } from '../../../../shared/domain/breaker.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import type { Outcome } from '../../../../shared/domain/outcome.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import type { Clause } from '../../../../shared/query/targets/clauses.ts';

/**
 * State of a message for the device channel: in the inbox, acknowledged and deleted, in the inbox after its expiry, or
 * deleted after its expiry with an acknowledgement or without one.
 */
export type InboxState = 'waiting' | 'acknowledged' | 'expired' | 'gone';

/** Facts of a push and a device that the text describes. */
export interface PushTrace {
  push: Push;
  clause: Clause | undefined;
  device: TracedDevice | undefined;
  route: { connector: string; profile: string; problem?: string };
  batch: TracedBatch | undefined;
  outcome: Outcome | null;
  failure: TracedFailure | undefined;
  inbox: InboxState | null;
  trouble: GatewayFailure | undefined;
  validityDays: number;
}

/** Describes in one or two sentences what happened between a device and a push. */
export function traceText(trace: PushTrace): string {
  if (trace.outcome !== null) return outcomeText(trace, trace.outcome);
  if (trace.batch) return pendingText(trace, trace.batch);
  return unmatchedText(trace);
}

function outcomeText(trace: PushTrace, outcome: Outcome): string {
  const { failure, device, inbox, push } = trace;
  const route = routeText(trace);
  const deleted = device ? '' : ' The installation was deleted since.';
  if (outcome === 'sent')
    return inbox
      ? inboxText(inbox, push.expiresAt)
      : `It was handed over to ${route}${timeText(trace)}.${repeatsText(trace)}${deleted}`;
  const why = failure ? failureText(failure) : 'the reason is no longer kept';
  switch (outcome) {
    case 'invalid_token':
      return `${route} said that the address of this device is dead (${why})${timeText(trace)}.${deleted}`;
    case 'expired':
      return `The push expired before it was sent to this device (${why}).${deleted}`;
    case 'capped':
      return `It was not sent: ${why}.${deleted}`;
    case 'dropped':
      return `It was dropped and not sent: ${why}.${deleted}`;
    case 'failed':
      return failure && failure.status > 0
        ? `${route} did not take it (${why})${timeText(trace)}.${deleted}`
        : `It could not be sent by ${route}: ${why}.${deleted}`;
  }
}

function inboxText(state: InboxState, expiresAt: Date): string {
  const end = expiresAt.toISOString();
  switch (state) {
    case 'waiting':
      return `Its message waits in the inbox until ${end}: the device has not acknowledged it yet.`;
    case 'acknowledged':
      return 'The device got it and acknowledged it.';
    case 'expired':
      return `The device did not acknowledge its message before it expired at ${end}.`;
    case 'gone':
      return `Its message was put into the inbox and is gone: acknowledged, or expired at ${end}.`;
  }
}

/** Mentions requests without an answer: their messages may have arrived as well. */
function repeatsText({ batch }: PushTrace): string {
  const times = batch?.unanswered ?? 0;
  if (times === 0) return '';
  const many = times === 1 ? 'An earlier request' : `${times} earlier requests`;
  return ` ${many} got no answer, so it may have arrived more than once.`;
}

const routeText = ({ route }: PushTrace): string =>
  route.connector === 'channel' || route.profile === ''
    ? displayName(route.connector)
    : `${displayName(route.connector)} (profile ${route.profile})`;

const failureText = ({ status, reason }: TracedFailure): string =>
  status > 0 ? `${status} ${reason}` : reason;

function timeText({ failure, batch }: PushTrace): string {
  const at = failure?.createdAt ?? batch?.settledAt;
  return at ? ` at ${at.toISOString()}` : '';
}

function pendingText(trace: PushTrace, batch: TracedBatch): string {
  const { push } = trace;
  const next =
    push.state === 'cancelled'
      ? 'the push was cancelled'
      : batch.attempt > 0
        ? `it was tried ${batch.attempt === 1 ? 'once' : `${batch.attempt} times`} and will be tried again`
        : `the push is ${push.state} and this device has not had its turn or its answer yet`;
  return `It was matched and goes by ${routeText(trace)}: ${next}.${waitText(trace, batch)}`;
}

/** Tells why the device waits: its gateway cannot be reached, or the last try failed. */
function waitText({ trouble }: PushTrace, { connector, lastReason }: TracedBatch): string {
  if (trouble) return ` ${gatewayFailureText(connector, trouble.reason)} (at ${trouble.at.toISOString()}).`;
  return lastReason === null ? '' : ` The last try: ${lastReason}.`;
}

function unmatchedText(trace: PushTrace): string {
  const { push, device, clause } = trace;
  const isPassed = push.isPlanned || (device !== undefined && device.id <= push.plannedThrough);
  if (push.state === 'cancelled') return 'The push was cancelled before this device was matched.';
  if (push.state === 'failed') return `The push failed as a whole: ${push.error ?? 'no reason was kept'}.`;
  if (clause)
    return `${isPassed ? 'It was not matched' : 'It will not be matched'}: ${clauseText(trace, clause)}.`;
  if (!isPassed) {
    const { problem } = trace.route;
    const way =
      problem === undefined
        ? `by ${routeText(trace)}`
        : `but cannot be sent by ${routeText(trace)}: ${problem}`;
    return `The push is ${push.state} and has not come to this device: as things are now it will be matched, ${way}.`;
  }
  if (device && device.created_at > push.createdAt)
    return `It was registered at ${device.created_at.toISOString()}, after the push was made; it would be matched now.`;
  const saved = device ? ` It was saved last at ${device.updated_at.toISOString()}.` : '';
  return `It was not matched when the push was planned, but would be now.${saved}`;
}

function clauseText({ device, validityDays }: PushTrace, clause: Clause): string {
  switch (clause.kind) {
    case 'where':
    case 'channels':
      return `the condition ${clause.text} does not hold for it`;
    case 'devices':
      return `it is not among the ${clause.text}`;
    case 'valid':
      return 'the installation is not valid';
    case 'fresh':
      return `it was saved last at ${device?.updated_at.toISOString() ?? 'an unknown time'}, more than ${validityDays} days ago`;
  }
}
