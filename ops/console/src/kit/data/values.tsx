import type { ReactNode } from 'react';
import { writeMeaning } from '../../../../../shared/domain/admin/reasons/meaning.ts';
import type { Language } from '../../../../../shared/domain/texts/catalogue.ts';
import type { Meaning } from '../../../../client/operations.ts';
import { useLanguage, withBrands } from '../../text/explanation.ts';
import { formatTime, formatUtc } from '../../text/format.ts';
import badgeStyles from './badge.module.css';
import barStyles from './bar.module.css';
import reasonStyles from './reason.module.css';

/** Colour of a state. The text has the same meaning. */
export type Tone = 'good' | 'warn' | 'bad' | 'accent' | 'idle';

/** Coloured label for a short state. */
export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`${badgeStyles.badge} ${badgeStyles[tone]}`}>{children}</span>;
}

interface Segment {
  /** `rest` is not drawn: the empty part of the bar shows it. */
  tone: 'good' | 'warn' | 'bad' | 'idle' | 'rest';
  value: number;
  label: string;
}

/**
 * Stacked bar, announced as a progress bar. Its value is the share of all segments that are not
 * `idle` or `rest`.
 */
export function Bar({
  segments,
  total,
  label,
}: {
  segments: Segment[];
  total: number;
  label: string;
}) {
  const done = segments.reduce(
    (sum, { tone, value }) => (tone === 'idle' || tone === 'rest' ? sum : sum + value),
    0,
  );
  const percent = total === 0 ? 0 : Math.min(100, (done / total) * 100);
  const text = segments
    .filter(({ value }) => value > 0)
    .map(({ label: name, value }) => `${name} ${value.toLocaleString()}`)
    .join(', ');
  return (
    <div
      className={barStyles.bar}
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
          <rect key={tone} className={barStyles[tone]} x={x} y={0} width={width} height={1} />
        ))}
      </svg>
    </div>
  );
}

/**
 * Returns the positions in percent. A non-empty segment is at least half a percent wide, so that
 * one failure in a million is visible.
 */
function offsets(segments: Segment[], total: number) {
  let x = 0;
  return segments
    .filter(({ tone, value }) => tone !== 'rest' && value > 0 && total > 0)
    .map(({ tone, value }) => {
      const width = Math.max(0.5, (value / total) * 100);
      const placed = { tone, x: Math.min(x, 100 - width), width };
      x += width;
      return placed;
    });
}

/** Text that shows names between backticks as code. */
export function Marked({ text }: { text: string }) {
  // Every second part was between backticks.
  return text.split('`').map((part, at) =>
    at % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text do not move.
      <code key={at} translate="no">
        {part}
      </code>
    ),
  );
}

/** Time in the reader's time zone. The tooltip shows UTC. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={formatUtc(at)}>
      {formatTime(at)}
    </time>
  );
}

interface ReasonProps {
  reason: string;
  meaning: Meaning | null | undefined;
  /** Status of the gateway, shown before the reason. 0 without a status. */
  status?: number | string | null;
}

/**
 * Reason from a gateway, a connection or the service. Shows its meaning in the page's language and
 * the original text to copy. On an English page, a reason that is already an English sentence is
 * shown without a meaning.
 */
export function Reason({ reason, meaning, status = 0 }: ReasonProps) {
  const language = useLanguage();
  const original = status ? `${status} ${reason}` : reason;
  return (
    <span className={reasonStyles.reason}>
      {textOf(reason, meaning, language)}
      <code lang="en" translate="no">
        {original}
      </code>
    </span>
  );
}

function textOf(
  reason: string,
  meaning: Meaning | null | undefined,
  language: Language,
): string | undefined {
  if (!meaning || meaning.code === 'other') return undefined;
  if (language === 'zh' || !reason.includes(' ')) return `${writeMeaning(meaning, language)} `;
  // Shows brands instead of connector ids. The original text is still shown, because people search
  // for it.
  const readable = withBrands(reason);
  return readable === reason ? undefined : `${readable} `;
}

/** Several reasons, such as problems of credentials. */
export function Reasons({
  reasons,
  meanings,
}: {
  reasons: readonly string[];
  meanings: readonly Meaning[];
}) {
  return reasons.map((reason, at) => (
    <span key={reason}>
      <Reason reason={reason} meaning={meanings[at]} />{' '}
    </span>
  ));
}
