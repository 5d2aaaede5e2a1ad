import type { TracedBatch, TracedDevice, TracedFailure } from '../../../../shared/db/tables/traces.ts';
import { type GatewayFailure, gatewayTrouble } from '../../../../shared/domain/breaker.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import type { Notification } from '../../../../shared/domain/notification.ts';
import type { Outcome } from '../../../../shared/domain/outcome.ts';
import type { Clause } from '../../../../shared/query/clauses.ts';

/**
 * A message of our own channel: in the inbox, deleted by its acknowledgement, in the inbox past its time,
 * or gone after its time, when nobody knows any more whether it was acknowledged.
 */
export type LetterState = 'waiting' | 'acknowledged' | 'expired' | 'gone';

export interface Story {
  push: Notification;
  clause: Clause | undefined;
  device: TracedDevice | undefined;
  route: { connector: string; profile: string; problem?: string };
  batch: TracedBatch | undefined;
  outcome: Outcome | null;
  failure: TracedFailure | undefined;
  letter: LetterState | null;
  trouble: GatewayFailure | undefined;
  validityDays: number;
}

/** The whole story of a device and a push in one or two sentences for people. */
export function sentenceOf(story: Story): string {
  if (story.outcome !== null) return endOf(story, story.outcome);
  if (story.batch) return onTheWay(story, story.batch);
  return outside(story);
}

function endOf(story: Story, outcome: Outcome): string {
  const { failure, device, letter, push } = story;
  const way = wayOf(story);
  const deleted = device ? '' : ' The installation was deleted since.';
  if (outcome === 'sent')
    return letter
      ? letterSentence(letter, push.expiresAt)
      : `It was handed over to ${way}${time(story)}.${repeated(story)}${deleted}`;
  const why = failure ? reasonOf(failure) : 'the reason is no longer kept';
  switch (outcome) {
    case 'invalid_token':
      return `${way} said that the address of this device is dead (${why})${time(story)}.${deleted}`;
    case 'expired':
      return `The push expired before it was sent to this device (${why}).${deleted}`;
    case 'capped':
      return `It was not sent: ${why}.${deleted}`;
    case 'dropped':
      return `It was dropped and not sent: ${why}.${deleted}`;
    case 'failed':
      return failure && failure.status > 0
        ? `${way} did not take it (${why})${time(story)}.${deleted}`
        : `It could not be sent by ${way}: ${why}.${deleted}`;
  }
}

function letterSentence(letter: LetterState, expiresAt: Date): string {
  const end = expiresAt.toISOString();
  switch (letter) {
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

/** An earlier try may have arrived as well. */
function repeated({ batch }: Story): string {
  const times = batch?.unanswered ?? 0;
  if (times === 0) return '';
  const many = times === 1 ? 'An earlier request' : `${times} earlier requests`;
  return ` ${many} got no answer, so it may have arrived more than once.`;
}

const wayOf = ({ route }: Story): string =>
  route.connector === 'channel' || route.profile === ''
    ? displayName(route.connector)
    : `${displayName(route.connector)} (profile ${route.profile})`;

const reasonOf = ({ status, reason }: TracedFailure): string => (status > 0 ? `${status} ${reason}` : reason);

function time({ failure, batch }: Story): string {
  const at = failure?.createdAt ?? batch?.settledAt;
  return at ? ` at ${at.toISOString()}` : '';
}

function onTheWay(story: Story, batch: TracedBatch): string {
  const { push } = story;
  const next =
    push.state === 'cancelled'
      ? 'the push was cancelled'
      : batch.attempt > 0
        ? `it was tried ${batch.attempt === 1 ? 'once' : `${batch.attempt} times`} and will be tried again`
        : `the push is ${push.state} and this device has not had its turn or its answer yet`;
  return `It was matched and goes by ${wayOf(story)}: ${next}.${waiting(story, batch)}`;
}

/** What it waits for: a gateway that cannot be asked, or else why the last try failed. */
function waiting({ trouble }: Story, { connector, lastReason }: TracedBatch): string {
  if (trouble) return ` ${gatewayTrouble(connector, trouble.reason)} (at ${trouble.at.toISOString()}).`;
  return lastReason === null ? '' : ` The last try: ${lastReason}.`;
}

function outside(story: Story): string {
  const { push, device, clause } = story;
  const isPassed = push.isPlanned || (device !== undefined && device.id <= push.plannedThrough);
  if (push.state === 'cancelled') return 'The push was cancelled before this device was matched.';
  if (push.state === 'failed') return `The push failed as a whole: ${push.error ?? 'no reason was kept'}.`;
  if (clause)
    return `${isPassed ? 'It was not matched' : 'It will not be matched'}: ${brokenSentence(story, clause)}.`;
  if (!isPassed) {
    const { problem } = story.route;
    const way =
      problem === undefined ? `by ${wayOf(story)}` : `but cannot be sent by ${wayOf(story)}: ${problem}`;
    return `The push is ${push.state} and has not come to this device: as things are now it will be matched, ${way}.`;
  }
  if (device && device.created_at > push.createdAt)
    return `It was registered at ${device.created_at.toISOString()}, after the push was made; it would be matched now.`;
  const saved = device ? ` It was saved last at ${device.updated_at.toISOString()}.` : '';
  return `It was not matched when the push was planned, but would be now.${saved}`;
}

function brokenSentence({ device, validityDays }: Story, clause: Clause): string {
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
