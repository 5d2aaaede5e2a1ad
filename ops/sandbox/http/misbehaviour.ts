import type { Scope } from '../kit/misbehaviour.ts';

/**
 * Scope of a misbehaviour; includes calls for access tokens only if `path` or `isTokenCall` names
 * them.
 */
interface HttpScope extends Scope {
  /** Prefix of the paths; absent: all but token calls. */
  path?: string;
  /** The calls for access tokens, at any path. */
  isTokenCall?: true;
}

/** Kinds of misbehaviour of an HTTP gateway, each for some requests only. */
export type Misbehaviour = HttpScope &
  (
    | { kind: 'answer'; status: number; body?: unknown; retryAfter?: string }
    /** Processes the request, then resets the stream, or with HTTP/1.1 the connection. */
    | { kind: 'reset' }
    /** Processes the request without a response. */
    | { kind: 'hang' }
    /** Delays the response. */
    | { kind: 'slow'; delayMs: number }
    /** Processes the request, then destroys the connection. */
    | { kind: 'disconnect' }
  );

/** Features of a request that select a misbehaviour. */
export interface Target {
  tokens: readonly string[];
  path?: string;
  isTokenCall?: boolean;
}

/** Whether a misbehaviour applies to this request. */
export function matches({ path, token, isTokenCall }: Misbehaviour, target: Target): boolean {
  if (token !== undefined && !target.tokens.includes(token)) return false;
  if (isTokenCall) return target.isTokenCall === true;
  return path === undefined ? target.isTokenCall !== true : (target.path ?? '').startsWith(path);
}
