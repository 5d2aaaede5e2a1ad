/**
 * Limit of the open requests, in seconds of responses. These requests are still in flight when a
 * push is stopped.
 */
const aheadSeconds = 0.4;
/** Response time above which requests are assumed to wait in a queue of the peer. */
const lateSeconds = 0.8;
/** For distant peers, both limits are at least this number of round trips. */
const aheadTrips = 2;
const lateTrips = 3;
/**
 * Stream limit of a new connection. From there it reaches any limit of the peer in a few tenths of
 * a second.
 */
const firstStreams = 100;
const minStreams = 16;
const measureMs = 100;
/** Minimum time for which the quickest response is remembered. */
const memoryMs = 30_000;

/**
 * Congestion window: limits the requests in flight on a connection. If requests are written faster
 * than the peer responds, they wait in a queue of the peer. This makes nothing faster, delays the
 * stop of a push, and causes more unknown results if the connection breaks. So the limit follows
 * the response rate, and doubles while responses are quick.
 */
export class StreamWindow {
  #limit = firstStreams;
  #measuredAtMs: number;
  #forgetAtMs: number;
  #responses = 0;
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

  /** Returns the maximum number of open streams for the peer's limit. */
  limitFor(peerLimit: number): number {
    return Math.min(peerLimit, this.#limit);
  }

  /** Records a response. `seconds` is the time since its request was written. */
  onResponse(seconds: number): void {
    this.#responses += 1;
    this.#latest = seconds;
    if (seconds > this.#slowest) this.#slowest = seconds;
    if (seconds < this.#quickest) this.#quickest = seconds;
  }

  /** Records that the limit has delayed requests. */
  onFull(): void {
    this.#wasFull = true;
  }

  /** Adjusts the limit. Called after responses were read. */
  onRead(nowMs: number): void {
    const passedMs = nowMs - this.#measuredAtMs;
    if (passedMs < measureMs || this.#responses === 0) return;
    const trip = Math.min(this.#quickest, this.#quickestBefore);
    const ahead = Math.max(aheadSeconds, aheadTrips * trip);
    // Responses to requests that were written before the last change do not show the effect of this
    // change.
    const isRecent = nowMs - this.#latest * 1000 >= this.#changedAtMs;
    if (this.#slowest > Math.max(lateSeconds, lateTrips * trip)) {
      const responsesAhead = Math.ceil((this.#responses * 1000 * ahead) / passedMs);
      this.#change(Math.max(minStreams, Math.min(responsesAhead, this.#limit)), nowMs);
    } else if (this.#wasFull && isRecent && this.#slowest < ahead)
      this.#change(this.#limit * 2, nowMs);
    this.#measuredAtMs = nowMs;
    this.#responses = 0;
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
