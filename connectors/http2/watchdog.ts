/** A connection, as far as a watchdog is concerned. */
export interface Pingable {
  /** Sends a PING; `callback` hears of its answer. */
  ping(callback: (error: Error | null) => void): unknown;
  /** Bytes wait before the socket, the PING perhaps among them. Absent: not known. */
  readonly hasBacklog?: boolean;
  /** Grows when such bytes leave. */
  readonly sentPieces?: number;
}

/** Finds out by PING whether a silent peer is still there (protocol/apns.md#connections). Times are monotonic. */
export class Watchdog {
  /** Counted up at every sign of life. */
  reads = 0;
  readonly #pingAfterMs: number;
  readonly #pingMs: number;
  #readsSeen = 0;
  #lastReadMs: number;
  #pingSentMs: number | null = null;
  #departedSeen = 0;
  #isDoubtful = false;

  constructor(timing: { pingAfterMs: number; pingMs: number }, nowMs: number) {
    this.#pingAfterMs = timing.pingAfterMs;
    this.#pingMs = timing.pingMs;
    this.#lastReadMs = nowMs;
  }

  /** A request got no answer in time. When nothing was read since, the peer may be gone: ping it now. */
  onTimeout(readsBefore: number): void {
    if (this.reads === readsBefore) this.#isDoubtful = true;
  }

  /**
   * False once a PING was not answered in time. Called every so often. The time runs from when the PING may have
   * left: behind a large upload it waits as long as the upload moves.
   */
  isAlive(session: Pingable, nowMs: number): boolean {
    if (this.reads !== this.#readsSeen) {
      this.#readsSeen = this.reads;
      this.#lastReadMs = nowMs;
      this.#isDoubtful = false;
    }
    const { sentPieces: departed = 0, hasBacklog: isBehind = false } = session;
    const isMoving = isBehind && departed !== this.#departedSeen;
    this.#departedSeen = departed;
    if (this.#pingSentMs !== null) {
      if (isMoving) this.#pingSentMs = nowMs;
      return nowMs - this.#pingSentMs <= this.#pingMs;
    }
    if (!this.#isDoubtful && nowMs - this.#lastReadMs < this.#pingAfterMs) return true;
    this.#pingSentMs = nowMs;
    session.ping((error) => {
      if (error !== null) return;
      this.#pingSentMs = null;
      this.reads += 1;
    });
    return true;
  }
}
