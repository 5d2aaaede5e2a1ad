import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { QuestionProcess } from '../harness/question-process.ts';

/** Highest device number for which the gateway records the time of the first request. */
export const firstDevices = 4096;

const observation = z.object({
  /** Requests since the last `forget`. */
  total: z.number(),
  /** Distinct devices of these requests, and repeated requests to a device. */
  distinct: z.number(),
  repeats: z.number(),
  /**
   * Times of the first and the last request, in milliseconds since 1970. 0 if there was no request.
   */
  firstMs: z.number(),
  lastMs: z.number(),
  /** Number of requests in each hundredth of a second, from the first request on. */
  buckets: z.array(z.number()),
  firstSeenMs: z.array(z.tuple([z.number(), z.number()])),
  /** Longest stall of the gateway process. Requests during a stall are counted after the stall. */
  stallMs: z.number(),
});
export type Observation = z.infer<typeof observation>;

const apns = z.object({
  url: z.string(),
  ca: z.string(),
  teamId: z.string(),
  keyId: z.string(),
  privateKey: z.string(),
  topics: z.array(z.string()),
});

/** Gateway process of a benchmark (gateway-process.ts). */
export interface BenchGateway {
  apns: z.infer<typeof apns>;
  readonly pid: number | undefined;
  observe(): Promise<Observation>;
  /** Resets the counters. Returns their last values. */
  forget(): Promise<Observation>;
  stop(): Promise<void>;
}

/** Starts the gateway. Resolves when the gateway listens. */
export async function startBenchGateway(
  env: Environment,
  log: (line: string) => void,
): Promise<BenchGateway> {
  const file = 'ops/bench/gateway/gateway-process.ts';
  const gateway = new QuestionProcess({ name: 'bench gateway', file, env, log });
  const ask = (forget: boolean) => gateway.ask({ forget }, observation);
  const access = apns.parse(await gateway.start());
  return {
    apns: access,
    get pid() {
      return gateway.pid;
    },
    observe: () => ask(false),
    forget: () => ask(true),
    stop: () => gateway.stop(),
  };
}

/**
 * Returns the device number from a device token of a benchmark: its last eight digits
 * (harness/bench-service.ts).
 */
export const numberOfToken = (token: string): number => Number.parseInt(token.slice(-8), 16);

/**
 * Set of device numbers with one bit for each number. It counts millions of devices exactly in
 * little memory.
 */
export class SeenNumbers {
  #bits = new Uint8Array(1024);
  distinct = 0;
  repeats = 0;

  add(number: number): void {
    const byteIndex = number >>> 3;
    if (byteIndex >= this.#bits.length) this.#grow(byteIndex);
    const bit = 1 << (number & 7);
    const known = this.#bits[byteIndex] ?? 0;
    if ((known & bit) !== 0) {
      this.repeats += 1;
      return;
    }
    this.#bits[byteIndex] = known | bit;
    this.distinct += 1;
  }

  clear(): void {
    this.#bits.fill(0);
    this.distinct = 0;
    this.repeats = 0;
  }

  #grow(minIndex: number): void {
    const larger = new Uint8Array(Math.max(minIndex + 1, this.#bits.length * 2));
    larger.set(this.#bits);
    this.#bits = larger;
  }
}

/** Duration of one counter of `Arrivals`. */
const bucketMs = 10;

/**
 * Number of requests over time. Times are in milliseconds since 1970, because all processes of a
 * machine share this clock.
 */
export class Arrivals {
  #originMs = 0;
  #buckets: number[] = [];
  count = 0;
  firstMs = 0;
  lastMs = 0;

  add(atMs: number): void {
    if (this.count === 0) {
      this.#originMs = Math.floor(atMs);
      this.firstMs = atMs;
    }
    this.count += 1;
    this.lastMs = atMs;
    const bucketIndex = Math.max(0, Math.floor((atMs - this.#originMs) / bucketMs));
    while (this.#buckets.length <= bucketIndex) this.#buckets.push(0);
    this.#buckets[bucketIndex] = (this.#buckets[bucketIndex] ?? 0) + 1;
  }

  /** Number of requests in each bucket, from the first request to the last. */
  get buckets(): readonly number[] {
    return this.#buckets;
  }

  clear(): void {
    this.#buckets = [];
    this.count = 0;
    this.firstMs = 0;
    this.lastMs = 0;
  }
}

/**
 * Returns the number of requests in each whole second. A second may begin with any bucket, and ends
 * before the last bucket.
 */
export function secondsOf(buckets: readonly number[]): number[] {
  const perSecond = 1000 / bucketMs;
  const counts: number[] = [];
  let sum = 0;
  for (const [i, count] of buckets.entries()) {
    sum += count - (buckets[i - perSecond] ?? 0);
    if (i >= perSecond - 1 && i < buckets.length - 1) counts.push(sum);
  }
  return counts;
}
