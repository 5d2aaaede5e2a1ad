/** States of a rotation of credentials, in their order (docs/operate/credentials.md). */
export const rotationStates = ['staged', 'checked', 'canary', 'promoted', 'rolled_back'] as const;
export type RotationState = (typeof rotationStates)[number];

/** One batch of this many is sent with the candidate, the first one at once. */
export const canaryShare = 100;

/** Accepted recipients after which a candidate is promoted, and time after which one is enough. */
export const enoughRecipients = 1000;
export const enoughMs = 3_600_000;
/** Time after which a canary without an accepted recipient ends. */
export const longestMs = 7 * 86_400_000;
/** Recipients from which on the share of worse answers counts, and that share. */
export const leastAsked = 100;
export const mostWorse = 0.01;

/** Answers to a candidate, in recipients. */
export interface CanaryCounts {
  batches: number;
  asked: number;
  /** Accepted with the candidate. */
  accepted: number;
  /** Refused for authentication or configuration. */
  refused: number;
  /**
   * Not accepted with the candidate, and accepted with the current version right after; and those
   * without an answer.
   */
  worse: number;
}

/** Reasons of a rollback. */
export type RollbackReason = 'refused' | 'worse' | 'noTraffic' | 'operator' | 'replaced';

export type CanaryVerdict =
  | { to: 'promoted' }
  | { to: 'rolled_back'; reason: RollbackReason }
  | undefined;

/** Decides on a canary by its counts so far and its age; undefined: it goes on. */
export function judgeCanary(
  { asked, accepted, refused, worse }: CanaryCounts,
  ageMs: number,
): CanaryVerdict {
  if (refused > 0) return { to: 'rolled_back', reason: 'refused' };
  if (asked >= leastAsked && worse > asked * mostWorse)
    return { to: 'rolled_back', reason: 'worse' };
  if (accepted >= enoughRecipients) return { to: 'promoted' };
  if (ageMs >= enoughMs && accepted > 0 && worse <= asked * mostWorse) return { to: 'promoted' };
  return ageMs >= longestMs
    ? { to: 'rolled_back', reason: worse > 0 ? 'worse' : 'noTraffic' }
    : undefined;
}
