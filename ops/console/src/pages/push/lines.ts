import type { PushTimeline } from '../../../../client/operations.ts';

/** Line of the chart. */
interface Line {
  label: string;
  /** CSS variable of `tokens.css`, including the leading dashes. */
  color: string;
  values: number[];
}

/**
 * Returns the chart points as rates per second over all connectors. Adds a point before the push
 * and, if the push has ended, a point after it, so that a short push is visible. While the push
 * runs, leaves out the last step, because its count is incomplete.
 */
export function linesOf(
  { from, stepMs, connectors }: PushTimeline,
  hasEnded: boolean,
  t: (key: string) => string,
): { times: number[]; series: Line[] } {
  const lines = Object.values(connectors);
  const steps = Math.max(0, ...lines.map(({ sent }) => sent.length));
  // Keeps a single step, because a new push has no other step.
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
