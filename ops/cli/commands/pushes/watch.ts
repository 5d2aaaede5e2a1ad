import { Presets, SingleBar } from 'cli-progress';
import { type Clock, sleep } from '../../../../shared/clock.ts';
import { isOpen, type PushRecord, settledOf } from './result.ts';

/** Quick at first, since most pushes are; then twice a second. */
const firstPauseMs = 50;
const longestPauseMs = 500;

/** Where standard error is no terminal, a line comes this often. */
const lineEveryMs = 3000;

export interface WatchOptions {
  /** Shows a bar on standard error where that is a terminal, and a line every few seconds where it is not. */
  isShown: boolean;
  clock: Clock;
}

/** Reads the record again and again until the push is done or has failed, and gives the last one. */
export async function watchPush(
  read: () => Promise<PushRecord>,
  { isShown, clock }: WatchOptions,
): Promise<PushRecord> {
  const bar = isShown && process.stderr.isTTY ? makeBar() : undefined;
  const lines = isShown && !bar ? new Lines(clock) : undefined;
  const startedAtMs = clock.monotonicMs();
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
      const record = await read();
      show(bar, record, clock.monotonicMs() - startedAtMs);
      if (!isOpen(record)) return record;
      lines?.show(record);
      await sleep(pauseMs);
    }
  } finally {
    if (bar?.isActive) bar.stop();
  }
}

/** How far a push is, in lines: one every few seconds, and one at once when something is wrong. */
class Lines {
  readonly #clock: Clock;
  #lastAtMs: number;
  #lastTrouble = '';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastAtMs = clock.monotonicMs();
  }

  show(record: PushRecord): void {
    const nowMs = this.#clock.monotonicMs();
    const trouble = troubleOf(record);
    const isNew = trouble !== '' && trouble !== this.#lastTrouble;
    if (!isNew && nowMs - this.#lastAtMs < lineEveryMs) return;
    this.#lastAtMs = nowMs;
    this.#lastTrouble = trouble;
    const progress = `${settledOf(record)} of ${record.devices} done`;
    process.stderr.write(`${[progress, ...(trouble === '' ? [] : [trouble])].join('; ')}\n`);
  }
}

/** What an open push waits for: a gateway that does not answer, and why. */
const troubleOf = ({ errors }: PushRecord): string => (typeof errors === 'string' ? errors : '');

function makeBar(): SingleBar {
  return new SingleBar(
    {
      format: '{bar} {percentage} % | {value} of {total} | {perSecond} per second{trouble}',
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
  if (!bar.isActive) bar.start(record.devices, 0, { perSecond: 0, trouble: '' });
  bar.setTotal(record.devices);
  const trouble = troubleOf(record);
  bar.update(settled, {
    perSecond: Math.round((settled * 1000) / Math.max(elapsedMs, 1)),
    trouble: trouble === '' ? '' : ` | ${trouble}`,
  });
}
