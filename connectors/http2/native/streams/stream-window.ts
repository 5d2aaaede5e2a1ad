/** How far ahead of the peer's answers a connection may be: so much is still on its way when a push is stopped. */
const aheadSeconds = 0.4;
/** An answer that took longer has waited in a queue, and what is written after it will wait longer. */
const lateSeconds = 0.8;
/** Where the way itself is long, times of it. */
const aheadTrips = 2;
const lateTrips = 3;
/** What a new connection begins with; it takes a few tenths of a second to any limit that the peer names. */
const firstStreams = 100;
const leastStreams = 16;
const measureMs = 100;
/** How long the shortest way is remembered, at least. */
const memoryMs = 30_000;

/**
 * How many requests a connection may have on their way. A peer that answers slower than we write queues what it
 * was given: that makes nothing faster, only the stop of a push, and the number of unknown outcomes when the
 * connection breaks, worse. So the number follows what is answered; it doubles as long as answers come at once.
 */
export class StreamWindow {
  #limit = firstStreams;
  #measuredAtMs: number;
  #forgetAtMs: number;
  #answers = 0;
  #slowest = 0;
  #latest = 0;
  #changedAtMs: number;
  #quickest = Number.POSITIVE_INFINITY;
  #quickestBefore = Number.POSITIVE_INFINITY;
  #wasFull = false;

  constructor(nowMs: number) {
    this.#measuredAtMs = nowMs;
    this.#changedAtMs = nowMs;
    this.#forgetAtMs = nowMs + memoryMs;
  }

  /** Of `peerLimit` streams, how many may be open. */
  limitFor(peerLimit: number): number {
    return Math.min(peerLimit, this.#limit);
  }

  /** An answer came, so many seconds after its request was written. */
  onResponse(seconds: number): void {
    this.#answers += 1;
    this.#latest = seconds;
    if (seconds > this.#slowest) this.#slowest = seconds;
    if (seconds < this.#quickest) this.#quickest = seconds;
  }

  /** More could have been written. */
  onFull(): void {
    this.#wasFull = true;
  }

  /** To be called after answers were read. */
  onRead(nowMs: number): void {
    const passedMs = nowMs - this.#measuredAtMs;
    if (passedMs < measureMs || this.#answers === 0) return;
    const trip = Math.min(this.#quickest, this.#quickestBefore);
    const ahead = Math.max(aheadSeconds, aheadTrips * trip);
    // Answers to what was written before the last change say nothing of it.
    const isKnown = nowMs - this.#latest * 1000 >= this.#changedAtMs;
    if (this.#slowest > Math.max(lateSeconds, lateTrips * trip)) {
      const answeredAhead = Math.ceil((this.#answers * 1000 * ahead) / passedMs);
      this.#change(Math.max(leastStreams, Math.min(answeredAhead, this.#limit)), nowMs);
    } else if (this.#wasFull && isKnown && this.#slowest < ahead) this.#change(this.#limit * 2, nowMs);
    this.#measuredAtMs = nowMs;
    this.#answers = 0;
    this.#slowest = 0;
    this.#wasFull = false;
    if (nowMs < this.#forgetAtMs) return;
    this.#forgetAtMs = nowMs + memoryMs;
    this.#quickestBefore = this.#quickest;
    this.#quickest = Number.POSITIVE_INFINITY;
  }

  #change(limit: number, nowMs: number): void {
    this.#limit = limit;
    this.#changedAtMs = nowMs;
  }
}
