import styles from './bar.module.css';

export interface Segment {
  tone: 'good' | 'warn' | 'bad' | 'idle';
  value: number;
  label: string;
}

/** Bar of parts of a whole, as a progress bar: the value is the share of all parts that are not `idle`. */
export function Bar({ segments, total, label }: { segments: Segment[]; total: number; label: string }) {
  const done = segments.reduce((sum, { tone, value }) => (tone === 'idle' ? sum : sum + value), 0);
  const percent = total === 0 ? 0 : Math.min(100, (done / total) * 100);
  const text = segments
    .filter(({ value }) => value > 0)
    .map(({ label: name, value }) => `${name} ${value.toLocaleString()}`)
    .join(', ');
  return (
    <div
      className={styles.bar}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(percent)}
      aria-valuetext={text}
      title={text}
    >
      <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
        {offsets(segments, total).map(({ tone, x, width }) => (
          <rect key={tone} className={styles[tone]} x={x} y={0} width={width} height={1} />
        ))}
      </svg>
    </div>
  );
}

/** Positions in percent. A part that is not empty is at least half a percent wide, so that one failure of a million shows. */
function offsets(segments: Segment[], total: number) {
  let x = 0;
  return segments
    .filter(({ value }) => value > 0 && total > 0)
    .map(({ tone, value }) => {
      const width = Math.max(0.5, (value / total) * 100);
      const placed = { tone, x: Math.min(x, 100 - width), width };
      x += width;
      return placed;
    });
}
