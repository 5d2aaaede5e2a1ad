/** Returns the number in the last eight digits of a benchmark's device token (harness/seed.ts). */
export const numberOfToken = (token: string): number => Number.parseInt(token.slice(-8), 16);

/** Set of seen numbers with one bit each: exact for millions of devices in little memory. */
export class SeenNumbers {
  #bits = new Uint8Array(1024);
  distinct = 0;
  repeats = 0;

  add(number: number): void {
    const place = number >>> 3;
    if (place >= this.#bits.length) this.#grow(place);
    const bit = 1 << (number & 7);
    const known = this.#bits[place] ?? 0;
    if ((known & bit) !== 0) {
      this.repeats += 1;
      return;
    }
    this.#bits[place] = known | bit;
    this.distinct += 1;
  }

  clear(): void {
    this.#bits.fill(0);
    this.distinct = 0;
    this.repeats = 0;
  }

  #grow(place: number): void {
    const larger = new Uint8Array(Math.max(place + 1, this.#bits.length * 2));
    larger.set(this.#bits);
    this.#bits = larger;
  }
}

/** Duration that one counter covers. */
export const bucketMs = 10;

/** Numbers of requests over time. Times are milliseconds since 1970, which all processes of a machine share. */
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
    const place = Math.max(0, Math.floor((atMs - this.#originMs) / bucketMs));
    while (this.#buckets.length <= place) this.#buckets.push(0);
    this.#buckets[place] = (this.#buckets[place] ?? 0) + 1;
  }

  /** Arrivals per bucket from the first arrival to the last. */
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

/** Returns the arrivals of each whole second that begins with a bucket and ends before the last bucket. */
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
