import type { Scope } from '../kit/misbehaviour.ts';

/** Calls for access tokens are spared unless they are named by path. */
interface HttpScope extends Scope {
  /** Strikes requests to paths that begin so; absent: to all but token calls. */
  path?: string;
}

/** Kinds of misbehaviour of an HTTP gateway, each for some requests only. */
export type Misbehaviour = HttpScope &
  (
    | { kind: 'answer'; status: number; body?: unknown; retryAfter?: string }
    /** Processed; then the stream, or with HTTP/1.1 the connection, is reset. */
    | { kind: 'reset' }
    /** Processed, never answered. */
    | { kind: 'hang' }
    /** Answered late. */
    | { kind: 'slow'; delayMs: number }
    /** Processed, then the whole connection is gone without a word. */
    | { kind: 'disconnect' }
  );

/** What is known of a request when it is decided whether a misbehaviour strikes. */
export interface Target {
  tokens: readonly string[];
  path?: string;
  isTokenCall?: boolean;
}

/** Whether a misbehaviour is meant for this request. */
export function matches({ path, token }: Misbehaviour, target: Target): boolean {
  if (token !== undefined && !target.tokens.includes(token)) return false;
  return path === undefined ? target.isTokenCall !== true : (target.path ?? '').startsWith(path);
}
