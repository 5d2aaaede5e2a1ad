/**
 * Decides which installations with invalid tokens are deleted after a push
 * (protocol/delivery.md#promise-7).
 */
import { type ConnectorId, displayName } from '../labels.ts';

/** Answers of one profile in one push. */
export interface ProfileAnswers {
  connector: ConnectorId;
  profile: string;
  /** Recipients that the gateway answered for. */
  answers: number;
  /** Of those, tokens that it called invalid. */
  invalid: number;
  /** Of the invalid ones, those whose answer proves the end of the token. */
  proofs: number;
  /** Most frequent reason of the invalid ones. */
  reason: string;
}

/** Answers that call tokens invalid, from which on their share decides. */
export const guardFrom = 20;

/**
 * What may be deleted: tokens that an answer only calls invalid, and tokens whose end it proves.
 */
export interface Deletable {
  called: boolean;
  proven: boolean;
}

/**
 * Judges the answers of a profile. If most tokens of a push are called invalid, the environment,
 * the topic or the project of the profile is probably wrong, and nothing may be deleted.
 */
export function deletableOf({
  answers,
  invalid,
  proofs,
}: Omit<ProfileAnswers, 'reason'>): Deletable {
  return {
    called: invalid < guardFrom || invalid * 2 <= answers,
    proven: proofs < guardFrom || proofs * 10 <= answers * 9,
  };
}

/** A profile of which a push kept invalid tokens because they were most. */
export interface KeptTokens extends Omit<ProfileAnswers, 'proofs'> {
  /**
   * Of the invalid ones, those that were kept: tokens whose end was proven may have been deleted.
   */
  kept: number;
}

/** Returns what is kept of a profile because invalid tokens are most; undefined for nothing. */
export function keptOf({ proofs, ...counts }: ProfileAnswers): KeptTokens | undefined {
  const { called, proven } = deletableOf({ ...counts, proofs });
  const kept = (called ? 0 : counts.invalid - proofs) + (proven ? 0 : proofs);
  return kept > 0 ? { ...counts, kept } : undefined;
}

/** Returns the sentence of a record about kept tokens. */
export const keptText = ({
  connector,
  profile,
  answers,
  invalid,
  kept,
  reason,
}: KeptTokens): string =>
  `${displayName(connector)}, profile ${profile}: ${invalid} of ${answers} answers call the token invalid (${reason}), so ${kept === invalid ? 'no device was deleted' : `${kept} devices were not deleted`}; the environment, topic or project of the profile is probably wrong`;
