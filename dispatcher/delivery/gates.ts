import { reason } from '../../shared/domain/reasons.ts';
import { quietReason, quietWait } from '../../shared/rules/quiet-hours.ts';
import type { DispatcherDeps } from '../deps.ts';
import type { BatchInWork } from '../recording/batch-in-work.ts';
import type { Postponement, UnsentOutcome } from '../recording/unsent.ts';
import type { SendSlot } from '../sending/task.ts';

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

/** Checks a condition that a batch must meet before it is sent. */
export type Gate = (
  deps: DispatcherDeps,
  batch: BatchInWork,
) => Promise<GateDecision> | GateDecision;

/** Decision of a gate that lets a batch pass. */
export const pass: GateDecision = { kind: 'send' };

const cancelled: Gate = (_deps, { stored }) =>
  stored.state === 'cancelled' ? { kind: 'settle', outcome: 'dropped', reason: 'cancelled' } : pass;

const expiryReason = (lastReason: string | null): string =>
  lastReason === null ? reason('expired') : reason('expiredAfterTry', { why: lastReason });

const expired: Gate = ({ clock }, { stored }) =>
  stored.expiresAt.getTime() <= clock.now()
    ? { kind: 'settle', outcome: 'expired', reason: expiryReason(stored.lastReason) }
    : pass;

/**
 * Fails a batch if an earlier batch of the push failed because of the profile's credentials or
 * configuration.
 */
const profileError: Gate = (_deps, { stored }) => {
  const error = stored.profileErrors[`${stored.connector}/${stored.profile}`];
  return error === undefined ? pass : { kind: 'settle', outcome: 'failed', reason: error };
};

const paused: Gate = (_deps, { stored }) => (stored.state === 'paused' ? { kind: 'hold' } : pass);

/**
 * Holds the batches of a frozen app or service. This gate comes after `cancelled`, `expired` and
 * `paused`, so that such a batch does not wait for the end of the freeze.
 */
const frozen: Gate = async ({ freezes }, { ids: { appId } }) =>
  (await freezes.isFrozen(appId)) ? { kind: 'hold' } : pass;

/**
 * Postpones a retry batch until its earliest time. The batch keeps this time even if its push is
 * paused and resumed.
 */
const early: Gate = (_deps, { stored: { notBefore: at, waitMs: afterMs } }) =>
  at !== null && afterMs !== null && afterMs > 0 ? { kind: 'postpone', afterMs, at } : pass;

/**
 * Postpones a batch to the end of the quiet hours of its devices. All devices of a batch have the
 * same quiet hours and local time.
 */
const quietHours: Gate = ({ clock }, { stored: { quiet, expiresAt } }) => {
  const nowMs = clock.now();
  const until = quietWait(quiet, { nowMs, expiresAt });
  if (until === undefined) return pass;
  if (until === 'expired') return { kind: 'settle', outcome: 'expired', reason: quietReason };
  return { kind: 'postpone', afterMs: until.getTime() - nowMs, at: until, quietUntil: until };
};

/**
 * Postpones a batch while the breaker of its gateway is open, but at most until the batch expires.
 */
const breakerOpen: Gate = async (
  { breakers, clock },
  { ids: { appId }, stored: { connector, profile, expiresAt } },
) => {
  const afterMs = await breakers.waitMs({ connector, appId, profile });
  const leftMs = Math.max(0, expiresAt.getTime() - clock.now());
  return afterMs === 0 ? pass : { kind: 'postpone', afterMs: Math.min(afterMs, leftMs) };
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

/** Checks whether the state of a batch allows it to be sent now. */
export const decide = (deps: DispatcherDeps, batch: BatchInWork): Promise<GateDecision> =>
  checkGates(stateGates, deps, batch);

/** Checks gates in order. The first gate that does not answer `send` decides. */
export async function checkGates(
  gates: Gate[],
  deps: DispatcherDeps,
  batch: BatchInWork,
): Promise<GateDecision> {
  let slot: SendSlot | undefined;
  for (const gate of gates) {
    const checked = gate(deps, batch);
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
