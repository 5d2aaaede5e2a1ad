import type { PushTimeline } from '../../../../client/operations.ts';

/** Line of the chart. */
interface Line {
  label: string;
  /** Name of a colour of `tokens.css`, with its dashes. */
  color: string;
  values: number[];
}

/**
 * Returns the points of the chart as rates per second, over all connectors. A point before the
 * push, and one after it once it has ended, make a short push visible. While it runs, the last step
 * is not over: its count would look like a fall, so it is left out.
 */
export function linesOf(
  { from, stepMs, connectors }: PushTimeline,
  hasEnded: boolean,
  t: (key: string) => string,
): { times: number[]; series: Line[] } {
  const lines = Object.values(connectors);
  const steps = Math.max(0, ...lines.map(({ sent }) => sent.length));
  // The only step stays: a push that has just begun has no other.
  const length = hasEnded ? steps : Math.max(Math.min(1, steps), steps - 1);
  if (length === 0) return { times: [], series: [] };
  const times = Array.from(
    { length: length + (hasEnded ? 2 : 1) },
    (_, at) => Date.parse(from) + (at - 1) * stepMs,
  );
  const rates = (part: 'sent' | 'other') => [
    0,
    ...Array.from({ length }, (_, step) => {
      const count = lines.reduce((sum, line) => sum + (line[part][step] ?? 0), 0);
      return count * (1000 / stepMs);
    }),
    ...(hasEnded ? [0] : []),
  ];
  const series: Line[] = [
    { label: t('outcome.sent'), color: '--good-fill', values: rates('sent') },
    { label: t('outcome.others'), color: '--bad-fill', values: rates('other') },
  ];
  return { times, series };
}
