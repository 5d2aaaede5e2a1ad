/** A connection, as far as a watchdog is concerned. */
export interface Pingable {
  /** Sends a PING; `callback` hears of its answer. */
  ping(callback: (error: Error | null) => void): unknown;
}

/** Finds out by PING whether a silent peer is still there (gateways-apns 1.7). Times are monotonic. */
export class Watchdog {
  /** Counted up at every sign of life. */
  reads = 0;
  readonly #pingAfterMs: number;
  readonly #pingMs: number;
  #readsSeen = 0;
  #lastReadMs: number;
  #pingSentMs: number | null = null;
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

  /** False once a PING was not answered in time. Called every so often. */
  isAlive(session: Pingable, nowMs: number): boolean {
    if (this.reads !== this.#readsSeen) {
      this.#readsSeen = this.reads;
      this.#lastReadMs = nowMs;
      this.#isDoubtful = false;
    }
    if (this.#pingSentMs !== null) return nowMs - this.#pingSentMs <= this.#pingMs;
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
