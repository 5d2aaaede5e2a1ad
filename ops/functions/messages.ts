import { z } from 'zod';

/** Messages between the host and a process that runs one file of functions. */

/** Context of a call, the second argument of a function. */
export interface CallContext {
  appId: string;
  appKey: string;
  masterKey: string;
  apiUrl: string;
  stage: 'production' | 'staging';
  isMaster: boolean;
  remoteAddress: string;
  sessionToken: string | undefined;
}

export interface CallMessage {
  id: number;
  /** Arguments as JSON. */
  text: string;
  kind: 'function' | 'before' | 'after' | 'login' | 'authData' | 'verified';
  /** Object-typed encoding: dates are `Date`s in arguments and results. */
  isTyped: boolean;
  context: CallContext;
}

export type ToProcess = CallMessage | { ping: number };

/** Result of a call: the body of the reply as JSON, or the error of the function. */
const callOutcome = z.union([
  z.object({ text: z.string() }),
  z.object({
    error: z.object({ code: z.int(), status: z.int().min(400).max(599), message: z.string() }),
  }),
]);
export type CallOutcome = z.infer<typeof callOutcome>;

/** Validated by the host, because the code of a function can write to the same channel. */
export const fromProcess = z.union([
  z.object({ id: z.int(), outcome: callOutcome }),
  z.object({ pong: z.int() }),
]);
export type FromProcess = z.infer<typeof fromProcess>;
