import { sleep } from '../../../../shared/clock.ts';

/** State of a topic, sent as one event. */
export interface TopicState {
  event: string;
  data: object;
  /** Poll interval before the next poll, in milliseconds. */
  pollAfterMs: number;
}

/** Subject that listeners watch. Topics with the same key share one poller. */
export interface Topic {
  key: string;
  /** Name in the form that the caller sent. The event repeats it. */
  name: string;
  poll(): Promise<TopicState>;
}

/** Sends an event as bytes of `text/event-stream`, which all listeners share. */
export type Deliver = (topic: string, bytes: Buffer) => void;

/** Minimum poll interval. A topic sends at most four events a second. */
export const minPollMs = 250;
const failedPollMs = 2000;
/**
 * Maximum share of time that polls of a topic may use. If polls are slow, because of a large push
 * or a busy machine, the interval grows up to `maxSlowPollMs`. Watching a push must not slow it
 * down.
 */
const pollShare = 0.03;
const maxSlowPollMs = 750;

/** Polls a topic while somebody listens and sends each change to all listeners. */
export class Poller {
  readonly #topic: Topic;
  readonly #nextId: () => number;
  readonly #listeners = new Set<Deliver>();
  readonly #stop = new AbortController();
  #lastData = '';
  #lastBytes: Buffer | undefined;

  constructor(topic: Topic, nextId: () => number) {
    this.#topic = topic;
    this.#nextId = nextId;
    void this.#run();
  }

  /** Adds a listener and sends it the last event at once. */
  add(listener: Deliver): void {
    this.#listeners.add(listener);
    if (this.#lastBytes) listener(this.#topic.key, this.#lastBytes);
  }

  /** Removes a listener. Returns true if it was the last listener, and then stops polling. */
  remove(listener: Deliver): boolean {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return false;
    this.#stop.abort();
    return true;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      let pollAfterMs = failedPollMs;
      try {
        const startedAtMs = performance.now();
        const state = await this.#topic.poll();
        const slowPollMs = Math.min(maxSlowPollMs, (performance.now() - startedAtMs) / pollShare);
        pollAfterMs = Math.max(minPollMs, state.pollAfterMs, slowPollMs);
        if (!signal.aborted) this.#publish(state);
      } catch {
        // The database is unavailable or the object does not exist any more. Listeners keep the
        // last state until the next poll.
      }
      await sleep(pollAfterMs, signal);
    }
  }

  #publish({ event, data }: TopicState): void {
    const text = JSON.stringify({ topic: this.#topic.name, ...data });
    if (text === this.#lastData) return;
    this.#lastData = text;
    this.#lastBytes = Buffer.from(`id: ${this.#nextId()}\nevent: ${event}\ndata: ${text}\n\n`);
    for (const listener of this.#listeners) listener(this.#topic.key, this.#lastBytes);
  }
}
