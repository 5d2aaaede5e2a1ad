import type { Clock } from '../../shared/clock.ts';
import type { Permit } from '../../shared/queue/consumer.ts';
import { InFlightBatch, newProgressMemory } from '../sending/in-flight-batch.ts';

/** How often what is in flight is looked at. */
const watchMs = 200;

/** A batch is let alone for so long after it began; what it takes to connect is part of it. */
const indulgenceMs = 800;

/** A batch that would take longer than this at the speed it has shown so far drags. */
const dragMs = 10_000;

interface Entry {
  /** The breaker's id of the gateway. */
  id: string;
  flight: InFlightBatch;
  place: Permit | undefined;
  /** When it was first seen to have begun. */
  begunAtMs: number | undefined;
  isSlow: boolean;
}

export interface InFlightOptions {
  clock: Clock;
  /** Ids of the breakers that are forced open; at most some 100 ms old. */
  forcedOpen(): Promise<Set<string>>;
}

/**
 * The batches in flight. One whose gateway is silent or slow gives up its place, so that other apps and
 * gateways find one (protocol/delivery.md#promise-4); one whose breaker is forced open is told to stop.
 */
export class InFlightBatches {
  readonly #options: InFlightOptions;
  readonly #entries = new Set<Entry>();
  #watch: NodeJS.Timeout | undefined;

  constructor(options: InFlightOptions) {
    this.#options = options;
  }

  /** Does `work` on a batch, watched meanwhile. */
  async track<T>(
    id: string,
    place: Permit | undefined,
    work: (shared: SharedArrayBuffer) => Promise<T>,
  ): Promise<T> {
    const shared = newProgressMemory();
    const entry = { id, flight: new InFlightBatch(shared), place, begunAtMs: undefined, isSlow: false };
    this.#entries.add(entry);
    this.#watch ??= setInterval(() => void this.#look(), watchMs);
    try {
      return await work(shared);
    } finally {
      this.#entries.delete(entry);
    }
  }

  /** How many batches of a gateway drag. */
  slowOf(id: string): number {
    let count = 0;
    for (const entry of this.#entries) if (entry.id === id && entry.isSlow) count += 1;
    return count;
  }

  close(): void {
    clearInterval(this.#watch);
  }

  async #look(): Promise<void> {
    if (this.#entries.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
      return;
    }
    for (const entry of this.#entries) this.#judge(entry);
    const open = await this.#options.forcedOpen().catch(() => undefined);
    for (const { id, flight } of this.#entries) if (open?.has(id)) flight.stop();
  }

  #judge(entry: Entry): void {
    const { size, answered } = entry.flight;
    if (size === 0) return;
    const nowMs = this.#options.clock.monotonicMs();
    entry.begunAtMs ??= nowMs;
    const ageMs = nowMs - entry.begunAtMs;
    entry.isSlow = ageMs >= indulgenceMs && answered * dragMs < size * ageMs;
    if (entry.isSlow) entry.place?.release();
  }
}
