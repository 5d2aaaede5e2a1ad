import { Presets, SingleBar } from 'cli-progress';
import { type Clock, sleep } from '../../../shared/clock.ts';
import { isOpen, type PushRecord, settledOf } from './push-result.ts';

/** Quick at first, since most pushes are; then twice a second. */
const firstPauseMs = 50;
const longestPauseMs = 500;

export interface WatchOptions {
  /** Shows a bar on standard error, where that is a terminal. */
  isShown: boolean;
  clock: Clock;
}

/** Reads the record again and again until the push is done or has failed, and gives the last one. */
export async function watchPush(
  read: () => Promise<PushRecord>,
  { isShown, clock }: WatchOptions,
): Promise<PushRecord> {
  const bar = isShown ? makeBar() : undefined;
  const startedAtMs = clock.monotonicMs();
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
      const record = await read();
      show(bar, record, clock.monotonicMs() - startedAtMs);
      if (!isOpen(record)) return record;
      await sleep(pauseMs);
    }
  } finally {
    if (bar?.isActive) bar.stop();
  }
}

function makeBar(): SingleBar {
  return new SingleBar(
    {
      format: '{bar} {percentage} % | {value} of {total} | {perSecond} per second',
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: false,
    },
    Presets.shades_classic,
  );
}

/** Shown as soon as the first recipients are known; the total grows while the push is being planned. */
function show(bar: SingleBar | undefined, record: PushRecord, elapsedMs: number): void {
  if (!bar || record.devices === 0) return;
  const settled = settledOf(record);
  if (!bar.isActive) bar.start(record.devices, 0, { perSecond: 0 });
  bar.setTotal(record.devices);
  bar.update(settled, { perSecond: Math.round((settled * 1000) / Math.max(elapsedMs, 1)) });
}
