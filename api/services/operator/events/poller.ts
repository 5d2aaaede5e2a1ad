import { sleep } from '../../../../shared/clock.ts';

/** State of a topic, as one event tells it. */
export interface TopicState {
  event: string;
  data: object;
  /** Pause before the next poll, in milliseconds. */
  restMs: number;
}

/** Thing that listeners watch. Topics with one key are the same, and polled once. */
export interface Topic {
  key: string;
  /** Name as the caller gives it, for the event. */
  name: string;
  poll(): Promise<TopicState>;
}

/** Event as bytes of `text/event-stream`, which all listeners share. */
export type Deliver = (topic: string, bytes: Buffer) => void;

/** Shortest pause between two polls, so that a topic has at most four events a second. */
export const minRestMs = 250;
const failedRestMs = 2000;
/**
 * Part of the time that polls of a topic may take: a push of millions, or a busy machine, then has
 * fewer events, at least one in 750 ms. The push itself must not notice that it is watched.
 */
const pollShare = 0.03;
const maxSlowRestMs = 750;

/** Polls a topic while anybody listens, and tells all listeners each change. */
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

  /** Adds a listener; it gets the last event at once. */
  add(listener: Deliver): void {
    this.#listeners.add(listener);
    if (this.#lastBytes) listener(this.#topic.key, this.#lastBytes);
  }

  /** Removes a listener; returns whether it was the last one, with which polling ends. */
  remove(listener: Deliver): boolean {
    this.#listeners.delete(listener);
    if (this.#listeners.size > 0) return false;
    this.#stop.abort();
    return true;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      let restMs = failedRestMs;
      try {
        const startedAtMs = performance.now();
        const state = await this.#topic.poll();
        const slowRestMs = Math.min(maxSlowRestMs, (performance.now() - startedAtMs) / pollShare);
        restMs = Math.max(minRestMs, state.restMs, slowRestMs);
        if (!signal.aborted) this.#tell(state);
      } catch {
        // The database is away, or the object is gone: listeners keep what they have, and the next
        // poll tells.
      }
      await sleep(restMs, signal);
    }
  }

  #tell({ event, data }: TopicState): void {
    const text = JSON.stringify({ topic: this.#topic.name, ...data });
    if (text === this.#lastData) return;
    this.#lastData = text;
    this.#lastBytes = Buffer.from(`id: ${this.#nextId()}\nevent: ${event}\ndata: ${text}\n\n`);
    for (const listener of this.#listeners) listener(this.#topic.key, this.#lastBytes);
  }
}
