/**
 * Decides which installations with invalid tokens are deleted after a push
 * (protocol/delivery.md#promise-7).
 */
import { type ConnectorId, displayName } from '../labels.ts';

/** Responses of the gateway for one profile in one push. */
export interface ProfileAnswers {
  connector: ConnectorId;
  profile: string;
  /** Number of recipients that the gateway responded for. */
  answers: number;
  /** Number of these recipients whose token the gateway called invalid. */
  invalid: number;
  /** Number of invalid tokens that the gateway proved to have ended. */
  proofs: number;
  /** Most frequent reason of the invalid tokens. */
  reason: string;
}

/** From this number of invalid tokens, their share decides whether devices are deleted. */
export const minInvalidTokens = 20;

/**
 * What may be deleted: `called` for tokens that the gateway only calls invalid, `proven` for tokens
 * that it proved to have ended.
 */
export interface Deletable {
  called: boolean;
  proven: boolean;
}

/**
 * Decides what may be deleted after the responses for a profile. If the gateway calls most tokens
 * of a push invalid, the environment, topic or project of the profile is probably wrong. Then
 * nothing may be deleted.
 */
export function deletableOf({
  answers,
  invalid,
  proofs,
}: Omit<ProfileAnswers, 'reason'>): Deletable {
  return {
    called: invalid < minInvalidTokens || invalid * 2 <= answers,
    proven: proofs < minInvalidTokens || proofs * 10 <= answers * 9,
  };
}

/** A profile for which a push kept devices, because most tokens were called invalid. */
export interface KeptTokens extends Omit<ProfileAnswers, 'proofs'> {
  /**
   * Number of invalid tokens whose devices were kept. Devices whose tokens were proved to have
   * ended may have been deleted.
   */
  kept: number;
}

/**
 * Returns the devices that are kept for a profile because most tokens are invalid; undefined if
 * none are kept.
 */
export function keptOf({ proofs, ...counts }: ProfileAnswers): KeptTokens | undefined {
  const { called, proven } = deletableOf({ ...counts, proofs });
  const kept = (called ? 0 : counts.invalid - proofs) + (proven ? 0 : proofs);
  return kept > 0 ? { ...counts, kept } : undefined;
}

/** Returns the sentence about kept devices for a push record. */
export const keptText = ({
  connector,
  profile,
  answers,
  invalid,
  kept,
  reason,
}: KeptTokens): string =>
  `${displayName(connector)}, profile ${profile}: ${invalid} of ${answers} answers call the token invalid (${reason}), so ${kept === invalid ? 'no device was deleted' : `${kept} devices were not deleted`}; the environment, topic or project of the profile is probably wrong`;
