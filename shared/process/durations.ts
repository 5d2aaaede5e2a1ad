/** Upper bounds of the buckets for requests to gateways, in seconds. */
export const gatewayBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Durations counted by bucket. Plain data: it crosses threads. */
export interface DurationCounts {
  /** By bucket of `gatewayBuckets`, and at the end those beyond all of them. */
  counts: number[];
  sumSeconds: number;
}

export const noDurations = (): DurationCounts => ({
  counts: new Array<number>(gatewayBuckets.length + 1).fill(0),
  sumSeconds: 0,
});

/** Counts one duration. */
export function addDuration(durations: DurationCounts, seconds: number): void {
  let bucket = 0;
  while (bucket < gatewayBuckets.length && seconds > (gatewayBuckets[bucket] ?? 0)) bucket += 1;
  durations.counts[bucket] = (durations.counts[bucket] ?? 0) + 1;
  durations.sumSeconds += seconds;
}

/** Adds `more` to `durations` in place. */
export function addDurations(durations: DurationCounts, more: DurationCounts): void {
  for (const [bucket, count] of more.counts.entries())
    durations.counts[bucket] = (durations.counts[bucket] ?? 0) + count;
  durations.sumSeconds += more.sumSeconds;
}
