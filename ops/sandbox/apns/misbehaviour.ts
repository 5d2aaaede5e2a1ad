import type { Scope } from '../kit/misbehaviour.ts';

/** Kinds of misbehaviour of the gateway, each for some requests only. */
export type Misbehaviour = Scope &
  (
    | { kind: 'answer'; status: number; reason: string; timestampMs?: number; retryAfter?: string }
    /** Resets the stream after the request was processed. */
    | { kind: 'reset'; code?: number }
    /** REFUSED_STREAM: not processed. */
    | { kind: 'refuse' }
    /** GOAWAY that names the stream before this one as the last: this one and later ones are not processed. */
    | { kind: 'goaway'; code?: number; reason?: string }
    /** Processed, never answered. */
    | { kind: 'hang' }
    /** Answered late. */
    | { kind: 'slow'; delayMs: number }
    /** Processed, then the whole connection is gone without a word. */
    | { kind: 'disconnect' }
  );

/** Whether a misbehaviour is meant for requests to this device. */
export const matches = ({ token }: Misbehaviour, to: string): boolean => token === undefined || token === to;
