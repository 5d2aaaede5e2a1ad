/** What is said between the host and a thread that runs one file of functions. */

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

export type ToThread = CallMessage | { ping: number };

/** How a call ended: the body of the reply as JSON, or what the function threw. */
export type CallOutcome = { text: string } | { error: { code: number; status: number; message: string } };

export type FromThread = { id: number; outcome: CallOutcome } | { pong: number };
