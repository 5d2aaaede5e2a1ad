import type { HttpResult } from './result.ts';

/**
 * Error of another server, the `cause` of a refusal: the log names the host and what happened,
 * which callers are not told. It holds no path, query or body.
 */
export class PeerError extends Error {
  override name = 'PeerError';

  /**
   * @param url address of the server
   * @param what what happened, such as `connect_failed (ECONNREFUSED)` or `status 502`
   */
  constructor(url: string, what: string) {
    super(`${URL.parse(url)?.host ?? 'unknown host'}: ${what}`);
  }
}

/** Returns the error of a request that got no usable answer. */
export function peerErrorOf(
  url: string,
  result: HttpResult | { kind: 'failed'; reason: string; cause?: string | undefined },
): PeerError {
  if (result.kind === 'response') return new PeerError(url, `unusable answer with status ${result.status}`);
  return new PeerError(url, `${result.reason}${result.cause === undefined ? '' : ` (${result.cause})`}`);
}
