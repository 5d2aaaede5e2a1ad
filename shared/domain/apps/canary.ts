/** States of a credential rotation in order (docs/operate/credentials.md). */
export const rotationStates = ['staged', 'checked', 'canary', 'promoted', 'rolled_back'] as const;
export type RotationState = (typeof rotationStates)[number];

/**
 * One of this number of batches is sent with the candidate. The first batch of a canary is always
 * sent with it.
 */
export const canaryShare = 100;

/**
 * Number of accepted recipients after which a candidate is promoted. After `enoughMs`, one accepted
 * recipient is enough.
 */
export const enoughRecipients = 1000;
export const enoughMs = 3_600_000;
/** Time after which a canary without accepted recipients ends. */
export const maxMs = 7 * 86_400_000;
/**
 * Number of recipients from which the share of worse responses counts, and the maximum of this
 * share.
 */
export const minRecipients = 100;
export const maxWorseShare = 0.01;

/** Responses to a candidate, counted in recipients. */
export interface CanaryCounts {
  batches: number;
  asked: number;
  /** Recipients that were accepted with the candidate. */
  accepted: number;
  /** Recipients that were refused because of authentication or configuration. */
  refused: number;
  /**
   * Recipients that were not accepted with the candidate but with the current version right after
   * it, and recipients without a response.
   */
  worse: number;
}

/** Reasons of a rollback. */
export type RollbackReason = 'refused' | 'worse' | 'noTraffic' | 'operator' | 'replaced';

export type CanaryVerdict =
  | { to: 'promoted' }
  | { to: 'rolled_back'; reason: RollbackReason }
  | undefined;

/** Decides on a canary by its counts and its age. Returns undefined if the canary continues. */
export function judgeCanary(
  { asked, accepted, refused, worse }: CanaryCounts,
  ageMs: number,
): CanaryVerdict {
  if (refused > 0) return { to: 'rolled_back', reason: 'refused' };
  if (asked >= minRecipients && worse > asked * maxWorseShare)
    return { to: 'rolled_back', reason: 'worse' };
  if (accepted >= enoughRecipients) return { to: 'promoted' };
  if (ageMs >= enoughMs && accepted > 0 && worse <= asked * maxWorseShare)
    return { to: 'promoted' };
  return ageMs >= maxMs
    ? { to: 'rolled_back', reason: worse > 0 ? 'worse' : 'noTraffic' }
    : undefined;
}
