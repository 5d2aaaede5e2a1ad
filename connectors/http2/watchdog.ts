/** Connection, as the watchdog uses it. */
export interface Pingable {
  /** Sends a PING and calls `callback` at its answer. */
  ping(callback: (error: Error | null) => void): unknown;
  /** Bytes wait to be written, perhaps with the PING. */
  readonly hasBacklog: boolean;
  /** Grows when such bytes are written. */
  readonly sentPieces: number;
}

/** Detects a dead peer by PING (protocol/apns.md#connections). Times are monotonic. */
export class Watchdog {
  /** Number of reads; the owner increments it. */
  reads = 0;
  readonly #pingAfterMs: number;
  readonly #pingMs: number;
  #readsSeen = 0;
  #lastReadMs: number;
  #pingSentMs: number | null = null;
  #sentSeen = 0;
  #mustPing = false;

  constructor(timing: { pingAfterMs: number; pingMs: number }, nowMs: number) {
    this.#pingAfterMs = timing.pingAfterMs;
    this.#pingMs = timing.pingMs;
    this.#lastReadMs = nowMs;
  }

  /** Reports a request timeout. If nothing was read since the request, the peer is pinged at once. */
  onTimeout(readsBefore: number): void {
    if (this.reads === readsBefore) this.#mustPing = true;
  }

  /**
   * Returns false once a PING was not answered in time; called periodically. The time starts when the PING may have
   * been written: it restarts as long as a large upload before it makes progress.
   */
  isAlive(session: Pingable, nowMs: number): boolean {
    if (this.reads !== this.#readsSeen) {
      this.#readsSeen = this.reads;
      this.#lastReadMs = nowMs;
      this.#mustPing = false;
    }
    const isMoving = session.hasBacklog && session.sentPieces !== this.#sentSeen;
    this.#sentSeen = session.sentPieces;
    if (this.#pingSentMs !== null) {
      if (isMoving) this.#pingSentMs = nowMs;
      return nowMs - this.#pingSentMs <= this.#pingMs;
    }
    if (!this.#mustPing && nowMs - this.#lastReadMs < this.#pingAfterMs) return true;
    this.#pingSentMs = nowMs;
    session.ping((error) => {
      if (error !== null) return;
      this.#pingSentMs = null;
      this.reads += 1;
    });
    return true;
  }
}
