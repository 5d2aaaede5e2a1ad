import { z } from 'zod';

/** Messages between the function host and its function processes. */

/** Context of a call. It becomes the second argument of the function. */
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
  /** True for the object encoding: dates are `Date` objects in arguments and results. */
  isTyped: boolean;
  context: CallContext;
}

export type ToProcess = CallMessage | { ping: number };

/** Result of a call: the body of the reply as JSON text, or the error of the function. */
const callOutcome = z.union([
  z.object({ text: z.string() }),
  z.object({
    error: z.object({ code: z.int(), status: z.int().min(400).max(599), message: z.string() }),
  }),
]);
export type CallOutcome = z.infer<typeof callOutcome>;

/**
 * Schema of messages to the host. The host must validate them, because the code of a function can
 * write to the same IPC channel.
 */
export const fromProcess = z.union([
  z.object({ id: z.int(), outcome: callOutcome }),
  z.object({ pong: z.int() }),
]);
export type FromProcess = z.infer<typeof fromProcess>;
