/** Figure of a benchmark. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** What it must reach, as "≥ 40,000". */
  goal?: string;
  /** The same figure of an earlier version, on the quiet machine of docs/performance.md. */
  before?: string;
}

/** Returns median, 95th percentile and maximum of durations in milliseconds. */
export function spread(name: string, valuesMs: readonly number[]): Figure[] {
  const sorted = [...valuesMs].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
  return [
    { name: `${name}, p50`, value: at(0.5), unit: 'ms' },
    { name: `${name}, p95`, value: at(0.95), unit: 'ms' },
    { name: `${name}, max`, value: at(1), unit: 'ms' },
  ];
}
