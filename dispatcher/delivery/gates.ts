import type { BatchSnapshot } from '../../shared/db/tables/pushes/delivery.ts';
import type { Outcome } from '../../shared/domain/outcome.ts';
import type { DeliverJob } from '../../shared/queue/jobs.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { SendSlot } from '../sending/task.ts';
import { checkDailyCap } from './daily-cap.ts';
import { reserveFlowControl, type SendTime } from './flow-control.ts';
import { checkTestLimit, reserveGatewayRate } from './gateway-rate.ts';

/** What is to happen to a batch that was taken. */
export type GateDecision =
  /** `slot`: when, in the pace of its push; absent is at once. */
  | { kind: 'send'; slot?: SendSlot }
  /** Ends here, counted without being sent. */
  | { kind: 'settle'; outcome: Outcome; reason: string }
  /** Goes back for a while; costs no attempt. `at` says the same exactly, by the database's clock. */
  | { kind: 'postpone'; afterMs: number; at?: Date | undefined }
  /** Its push is paused: waits without a job until that is resumed. */
  | { kind: 'hold' };

/** One question that is asked of every batch before it is sent. */
export interface Gate {
  name: string;
  check(deps: DispatcherDeps, task: DeliverJob, batch: BatchSnapshot): Promise<GateDecision> | GateDecision;
}

const send: GateDecision = { kind: 'send' };

const cancelled: Gate = {
  name: 'cancelled',
  check: (_means, _task, batch) =>
    batch.state === 'cancelled' ? { kind: 'settle', outcome: 'dropped', reason: 'cancelled' } : send,
};

const expiryReason = (lastReason: string | null): string =>
  lastReason === null ? 'expired before it was sent' : `expired; the last try: ${lastReason}`;

const expired: Gate = {
  name: 'expired',
  check: ({ clock }, _task, batch) =>
    batch.expiresAt.getTime() <= clock.now()
      ? { kind: 'settle', outcome: 'expired', reason: expiryReason(batch.lastReason) }
      : send,
};

/** This push gave the profile up: its credentials or configuration are wrong. */
const halted: Gate = {
  name: 'halted',
  check: (_means, _task, batch) => {
    const sentence = batch.profileErrors[`${batch.connector}/${batch.profile}`];
    return sentence === undefined ? send : { kind: 'settle', outcome: 'failed', reason: sentence };
  },
};

const paused: Gate = {
  name: 'paused',
  check: (_means, _task, batch) => (batch.state === 'paused' ? { kind: 'hold' } : send),
};

/** Recipients that are tried again wait for what the gateway asked for, also when their push was resumed meanwhile. */
const early: Gate = {
  name: 'early',
  check: (_means, _task, { notBefore }) =>
    notBefore !== null && notBefore.inMs > 0
      ? { kind: 'postpone', afterMs: notBefore.inMs, at: notBefore.at }
      : send,
};

/** `flow_control`: each batch has a slot of its own. Before the cap, which is asked on the day of sending. */
const paced: Gate = {
  name: 'paced',
  check: async (deps, task, batch) => {
    const turn = await reserveFlowControl(deps, task, batch);
    return turn ? decisionOf(turn, batch) : send;
  },
};

/** What the gateway takes in a second is shared by all pushes of the profile, over all dispatchers. */
const rated: Gate = {
  name: 'rated',
  check: async (deps, task, batch) => {
    const turn = await reserveGatewayRate(deps, task, batch);
    return turn ? decisionOf(turn, batch) : send;
  },
};

/** At the latest when the push expires: then the batch is counted. */
function decisionOf(turn: SendTime, { expiresAt }: BatchSnapshot): GateDecision {
  if (turn.kind === 'now') return { kind: 'send', slot: turn.slot };
  const earlyMs = Math.max(0, turn.at.getTime() - expiresAt.getTime());
  const at = new Date(turn.at.getTime() - earlyMs);
  return { kind: 'postpone', afterMs: Math.max(0, turn.afterMs - earlyMs), at };
}

/** A push that is marked as a test goes to few. */
const tested: Gate = {
  name: 'tested',
  check: async (deps, task, batch) => {
    const sentence = await checkTestLimit(deps, task, batch);
    return sentence === undefined ? send : { kind: 'settle', outcome: 'capped', reason: sentence };
  },
};

/** The app's recipients of today are used up. Last: it is not undone when the batch is held back. */
const capped: Gate = {
  name: 'capped',
  check: async (deps, task, batch) => {
    const sentence = await checkDailyCap(deps, task, batch);
    return sentence === undefined ? send : { kind: 'settle', outcome: 'capped', reason: sentence };
  },
};

/** The gateway cannot be asked: the batch waits for it, at most until it expires, and costs no thread. */
const broken: Gate = {
  name: 'broken',
  check: async ({ breakers, clock }, { appId }, { connector, profile, expiresAt }) => {
    const afterMs = await breakers.waitMs({ connector, appId, profile });
    const leftMs = Math.max(0, expiresAt.getTime() - clock.now());
    return afterMs === 0 ? send : { kind: 'postpone', afterMs: Math.min(afterMs, leftMs) };
  },
};

/** In the order they are asked: what ends a batch before what delays it. */
const gates: Gate[] = [cancelled, expired, halted, paused, early, broken, paced, rated, tested, capped];

/** Asks the gates in turn; the first that does not let the batch through decides. */
export async function passGates(
  deps: DispatcherDeps,
  task: DeliverJob,
  batch: BatchSnapshot,
): Promise<GateDecision> {
  let passed: Extract<GateDecision, { kind: 'send' }> = { kind: 'send' };
  for (const gate of gates) {
    const verdict = await gate.check(deps, task, batch);
    if (verdict.kind !== 'send') return verdict;
    if (verdict.slot) passed = { kind: 'send', slot: both(passed.slot, verdict.slot) };
  }
  return passed;
}

/** Two limits at once: from the later beginning, as slowly as the slower one. */
function both(one: SendSlot | undefined, other: SendSlot): SendSlot {
  if (!one) return other;
  return {
    startAtMs: Math.max(one.startAtMs, other.startAtMs),
    durationMs: Math.max(one.durationMs, other.durationMs),
  };
}
