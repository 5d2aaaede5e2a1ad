import { z } from 'zod';

/** What is said between the host and a process that runs one file of functions. */

/** Who calls, as a function sees it in its second argument. */
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
  /** The object-typed encoding: dates go in and come out as dates. */
  isTyped: boolean;
  context: CallContext;
}

export type ToProcess = CallMessage | { ping: number };

/** How a call ended: the body of the reply as JSON, or what the function threw. */
const callOutcome = z.union([
  z.object({ text: z.string() }),
  z.object({ error: z.object({ code: z.int(), status: z.int().min(400).max(599), message: z.string() }) }),
]);
export type CallOutcome = z.infer<typeof callOutcome>;

/** Checked by the host: the code of a function can write to the same channel. */
export const fromProcess = z.union([
  z.object({ id: z.int(), outcome: callOutcome }),
  z.object({ pong: z.int() }),
]);
export type FromProcess = z.infer<typeof fromProcess>;
