import { formatTime, formatUtc } from '../../text/format.ts';

/** Time in the zone of the reader, with UTC in the title. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <>–</>;
  return (
    <time dateTime={at} title={formatUtc(at)}>
      {formatTime(at)}
    </time>
  );
}
