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

/** Decision about a batch before it is sent. */
export type GateDecision =
  /** Send it, in its time slot if it has one. */
  | { kind: 'send'; slot?: SendSlot | undefined }
  /** Settle it without sending. */
  | ({ kind: 'settle' } & UnsentOutcome)
  /** Deliver it again later. This does not count as a try. */
  | ({ kind: 'postpone' } & Postponement)
  /**
   * Hold it without a job until its push is resumed, or until the freeze of its app or the service
   * ends.
   */
  | { kind: 'hold' };

/** A condition that a batch must meet before it is sent. */
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

/**
 * Fails a batch if an earlier batch of the push failed because of the profile's credentials or
 * configuration.
 */
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
 * Holds the batches of a frozen app or service. This gate comes after `cancelled`, `expired` and
 * `paused`, so that such a batch does not wait for the end of the freeze.
 */
const frozen: Gate = {
  name: 'frozen',
  check: async ({ freezes }, { ids: { appId } }) =>
    (await freezes.isFrozen(appId)) ? { kind: 'hold' } : send,
};

/**
 * Postpones a retry batch until its earliest time. The batch keeps this time even if its push is
 * paused and resumed.
 */
const early: Gate = {
  name: 'early',
  check: (_deps, { stored: { notBefore } }) =>
    notBefore !== null && notBefore.inMs > 0
      ? { kind: 'postpone', afterMs: notBefore.inMs, at: notBefore.at }
      : send,
};

/**
 * Postpones a batch to the end of the quiet hours of its devices. All devices of a batch have the
 * same quiet hours and local time.
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
 * Postpones a batch while the breaker of its gateway is open, but at most until the batch expires.
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
 * Reserves a time slot in the flow control of the push. This gate comes before the daily cap,
 * because the cap counts on the day of sending.
 */
const flowControl: Gate = {
  name: 'flow control',
  check: async (deps, batch) => decisionOf(await reserveFlowControl(deps, batch), batch.stored),
};

/**
 * Reserves time in the rate of the gateway, which all pushes of a profile share over all
 * dispatchers.
 */
const gatewayRate: Gate = {
  name: 'gateway rate',
  check: async (deps, batch) => decisionOf(await reserveGatewayRate(deps, batch), batch.stored),
};

/**
 * Converts a reserved time into a decision. A batch whose time is later than the expiry of the push
 * is delivered again at the expiry, and then counted as expired.
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

/** Limits a test push to a few devices (`testLimit` of its connector). */
const testLimit: Gate = {
  name: 'test limit',
  check: async (deps, batch) => settleCapped(await checkTestLimit(deps, batch)),
};

/**
 * Counts recipients against the daily cap of the app. This gate is the last one, because a grant is
 * not returned if a later gate postpones the batch.
 */
const dailyCap: Gate = {
  name: 'daily cap',
  check: async (deps, batch) => settleCapped(await checkDailyCap(deps, batch)),
};

/**
 * Gates that only read the state of the push and its gateway. Gates that end a batch come before
 * gates that delay it.
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

/**
 * Gates that reserve time or recipients for a batch. A batch that is delivered again keeps both.
 */
const reservations: Gate[] = [flowControl, gatewayRate, testLimit, dailyCap];

/** Checks whether the state of a batch allows it to be sent now. */
export const decide = (deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> =>
  checkGates(stateGates, deps, batch);

/** Reserves time slots and recipients for a batch that is about to be sent. */
export const reserve = (deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> =>
  checkGates(reservations, deps, batch);

/** Checks gates in order. The first gate that does not answer `send` decides. */
async function checkGates(
  gates: Gate[],
  deps: DispatcherDeps,
  batch: BatchInWork,
): Promise<GateDecision> {
  let slot: SendSlot | undefined;
  for (const gate of gates) {
    const checked = gate.check(deps, batch);
    const decision = checked instanceof Promise ? await checked : checked;
    if (decision.kind !== 'send') return decision;
    slot = slowerOf(slot, decision.slot);
  }
  return { kind: 'send', slot };
}

/** Combines two time slots: the later start and the longer duration. */
function slowerOf(one: SendSlot | undefined, other: SendSlot | undefined): SendSlot | undefined {
  if (!one || !other) return one ?? other;
  return {
    startAtMs: Math.max(one.startAtMs, other.startAtMs),
    durationMs: Math.max(one.durationMs, other.durationMs),
  };
}
