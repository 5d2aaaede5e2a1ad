import type { Scope } from '../kit/misbehaviour.ts';

/** Kinds of misbehaviour of the gateway, each for some requests only. */
export type Misbehaviour = Scope &
  (
    | {
        kind: 'answer';
        status: number;
        reason: string;
        timestampMs?: number;
        retryAfter?: string;
        /** Body in place of the JSON, as of a proxy. */
        page?: string;
      }
    /** Processes the request, then resets the stream. */
    | { kind: 'reset'; code?: number }
    /** Refuses the stream (REFUSED_STREAM) without processing the request. */
    | { kind: 'refuse' }
    /** Sends GOAWAY with the stream before this one as the last: this request and later ones are not processed. */
    | { kind: 'goaway'; code?: number; reason?: string }
    /** Processes the request without a response. */
    | { kind: 'hang' }
    /** Delays the response. */
    | { kind: 'slow'; delayMs: number }
    /** Processes the request, then destroys the connection. */
    | { kind: 'disconnect' }
  );

/** Whether a misbehaviour applies to requests to this device. */
export const matches = ({ token }: Misbehaviour, to: string): boolean => token === undefined || token === to;
