import type { BatchSnapshot } from '../../shared/db/tables/push-progress.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { quietReason, quietWait } from '../../shared/rules/quiet-hours.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import type { Postponement, UnsentOutcome } from '../recording/unsent.ts';
import type { SendSlot } from '../sending/task.ts';
import {
  checkDailyCap,
  checkTestLimit,
  reserveFlowControl,
  reserveGatewayRate,
  type SendTime,
} from './reservations.ts';

/** What happens to a batch that was taken. */
export type GateDecision =
  /** It is sent, in its slot if it has one. */
  | { kind: 'send'; slot?: SendSlot | undefined }
  /** It is settled without being sent. */
  | ({ kind: 'settle' } & UnsentOutcome)
  /** It is taken again later; this costs no try. */
  | ({ kind: 'postpone' } & Postponement)
  /**
   * It waits without a job until its push is resumed, or the freeze of its app or of the service
   * ends.
   */
  | { kind: 'hold' };

/** One condition that a batch has to meet before it is sent. */
interface Gate {
  name: string;
  check(deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> | GateDecision;
}

const send: GateDecision = { kind: 'send' };

const cancelled: Gate = {
  name: 'cancelled',
  check: (_deps, { stored }) =>
    stored.state === 'cancelled'
      ? { kind: 'settle', outcome: 'dropped', reason: 'cancelled' }
      : send,
};

const expiryReason = (lastReason: string | null): string =>
  lastReason === null ? reason('expired') : reason('expiredAfterTry', { why: lastReason });

const expired: Gate = {
  name: 'expired',
  check: ({ clock }, { stored }) =>
    stored.expiresAt.getTime() <= clock.now()
      ? { kind: 'settle', outcome: 'expired', reason: expiryReason(stored.lastReason) }
      : send,
};

/** An earlier batch of the push found that the profile's credentials or configuration are wrong. */
const profileError: Gate = {
  name: 'profile error',
  check: (_deps, { stored }) => {
    const error = stored.profileErrors[`${stored.connector}/${stored.profile}`];
    return error === undefined ? send : { kind: 'settle', outcome: 'failed', reason: error };
  },
};

const paused: Gate = {
  name: 'paused',
  check: (_deps, { stored }) => (stored.state === 'paused' ? { kind: 'hold' } : send),
};

/**
 * Last of those that depend on no time: what is cancelled, has expired or is paused needs no hold.
 */
const frozen: Gate = {
  name: 'frozen',
  check: async ({ freezes }, { ids: { appId } }) =>
    (await freezes.holds(appId)) ? { kind: 'hold' } : send,
};

/**
 * A retry batch waits as long as the gateway asked for, even if its push was paused and resumed.
 */
const early: Gate = {
  name: 'early',
  check: (_deps, { stored: { notBefore } }) =>
    notBefore !== null && notBefore.inMs > 0
      ? { kind: 'postpone', afterMs: notBefore.inMs, at: notBefore.at }
      : send,
};

/**
 * Recipients do not get it in their quiet hours, however long it was delayed: a batch is of zones
 * with the same time.
 */
const quietHours: Gate = {
  name: 'quiet hours',
  check: ({ clock }, { stored: { quiet, expiresAt } }) => {
    const nowMs = clock.now();
    const until = quietWait(quiet, { nowMs, expiresAt });
    if (until === undefined) return send;
    if (until === 'expired') return { kind: 'settle', outcome: 'expired', reason: quietReason };
    return { kind: 'postpone', afterMs: until.getTime() - nowMs, at: until, quietUntil: until };
  },
};

/**
 * The breaker is open: the batch waits for the gateway without a thread, at most until it expires.
 */
const breakerOpen: Gate = {
  name: 'breaker open',
  check: async (
    { breakers, clock },
    { ids: { appId }, stored: { connector, profile, expiresAt } },
  ) => {
    const afterMs = await breakers.waitMs({ connector, appId, profile });
    const leftMs = Math.max(0, expiresAt.getTime() - clock.now());
    return afterMs === 0 ? send : { kind: 'postpone', afterMs: Math.min(afterMs, leftMs) };
  },
};

/**
 * `flow_control`: every batch has a slot of its own. Before the daily cap, which counts on the day
 * of sending.
 */
const flowControl: Gate = {
  name: 'flow control',
  check: async (deps, batch) => decisionOf(await reserveFlowControl(deps, batch), batch.stored),
};

/** All pushes of a profile share the rate of its gateway, over all dispatchers. */
const gatewayRate: Gate = {
  name: 'gateway rate',
  check: async (deps, batch) => decisionOf(await reserveGatewayRate(deps, batch), batch.stored),
};

/**
 * Sends in the reserved slot, or later; at the push's expiry at the latest, when the batch is
 * counted expired.
 */
function decisionOf(time: SendTime | undefined, { expiresAt }: BatchSnapshot): GateDecision {
  if (!time) return send;
  if (time.kind === 'now') return { kind: 'send', slot: time.slot };
  const beyondMs = Math.max(0, time.at.getTime() - expiresAt.getTime());
  const at = new Date(time.at.getTime() - beyondMs);
  return { kind: 'postpone', afterMs: Math.max(0, time.afterMs - beyondMs), at };
}

const settleCapped = (why: string | undefined): GateDecision =>
  why === undefined ? send : { kind: 'settle', outcome: 'capped', reason: why };

/** A push that is marked as a test goes to a few devices. */
const testLimit: Gate = {
  name: 'test limit',
  check: async (deps, batch) => settleCapped(await checkTestLimit(deps, batch)),
};

/**
 * The app's recipients of the day. Last: a grant is not undone when a later gate postpones the
 * batch.
 */
const dailyCap: Gate = {
  name: 'daily cap',
  check: async (deps, batch) => settleCapped(await checkDailyCap(deps, batch)),
};

/**
 * Gates that read the state of the push and its gateway; first those that end a batch, then those
 * that delay it.
 */
const stateGates: Gate[] = [
  cancelled,
  expired,
  profileError,
  paused,
  frozen,
  early,
  quietHours,
  breakerOpen,
];

/** Gates that reserve time and recipients for a batch, all of which last when it is taken again. */
const reservations: Gate[] = [flowControl, gatewayRate, testLimit, dailyCap];

/** Decides by its state whether a batch is sent now. */
export const decide = (deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> =>
  pass(stateGates, deps, batch);

/** Reserves slots and recipients for a batch that is to be sent now. */
export const reserve = (deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> =>
  pass(reservations, deps, batch);

/** Checks gates in order; the first one that does not let the batch pass decides. */
async function pass(
  gates: Gate[],
  deps: DispatcherDeps,
  batch: BatchInWork,
): Promise<GateDecision> {
  let slot: SendSlot | undefined;
  for (const gate of gates) {
    const decision = await gate.check(deps, batch);
    if (decision.kind !== 'send') return decision;
    slot = slowerOf(slot, decision.slot);
  }
  return { kind: 'send', slot };
}

/** Combines two slots: the later start, and the longer duration. */
function slowerOf(one: SendSlot | undefined, other: SendSlot | undefined): SendSlot | undefined {
  if (!one || !other) return one ?? other;
  return {
    startAtMs: Math.max(one.startAtMs, other.startAtMs),
    durationMs: Math.max(one.durationMs, other.durationMs),
  };
}
