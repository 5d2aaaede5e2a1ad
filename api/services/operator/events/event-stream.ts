import { Readable } from 'node:stream';

/** Time after which a browser connects again. */
const retryMs = 2000;

/**
 * Body of `text/event-stream`. Of events that a slow reader has not taken yet it keeps the newest of each topic, so that
 * a reader costs a bounded amount of memory.
 */
export class EventStream extends Readable {
  readonly #waiting = new Map<string, string | Buffer>();
  #isWanted = false;
  #isEnding = false;

  constructor() {
    super({ highWaterMark: 64 * 1024 });
    this.send('retry', `retry: ${retryMs}\n\n`);
  }

  /** Sends an event, or replaces the one of this topic that still waits. All streams may share the bytes. */
  send(topic: string, text: string | Buffer): void {
    if (this.#isEnding || this.destroyed) return;
    this.#waiting.delete(topic);
    this.#waiting.set(topic, text);
    if (this.#isWanted) this.#flush();
  }

  /** Sends a comment, which keeps proxies from closing the connection. */
  beat(): void {
    this.send('beat', ':\n\n');
  }

  /** Says why the stream ends, and ends it. */
  bye(reason: string): void {
    this.send('bye', `event: bye\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.#isEnding = true;
    if (this.#isWanted) this.#flush();
  }

  override _read(): void {
    this.#isWanted = true;
    this.#flush();
  }

  #flush(): void {
    for (const [topic, text] of this.#waiting) {
      this.#waiting.delete(topic);
      this.#isWanted = this.push(text);
      if (!this.#isWanted) return;
    }
    if (this.#isEnding) this.push(null);
  }
}
