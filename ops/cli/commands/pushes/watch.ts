import { Presets, SingleBar } from 'cli-progress';
import { type Clock, sleep } from '../../../../shared/clock.ts';
import { isOpen, type PushRecord, settledOf } from './result.ts';

/** Polling interval: short at first, because most pushes are quick; then twice a second. */
const firstPauseMs = 50;
const longestPauseMs = 500;

/** Interval of lines when standard error is not a terminal. */
const lineEveryMs = 3000;

export interface WatchOptions {
  /** Whether to show a bar on standard error, or a line every few seconds when that is not a terminal. */
  isShown: boolean;
  clock: Clock;
}

/** Polls the record until the push is done or has failed. Returns the last record. */
export async function watchPush(
  read: () => Promise<PushRecord>,
  { isShown, clock }: WatchOptions,
): Promise<PushRecord> {
  const bar = isShown && process.stderr.isTTY ? makeBar() : undefined;
  const lines = isShown && !bar ? new ProgressLines(clock) : undefined;
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

/** Progress of a push in lines: one every few seconds, and one at once when there is a new hint. */
class ProgressLines {
  readonly #clock: Clock;
  #lastAtMs: number;
  #lastHint = '';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastAtMs = clock.monotonicMs();
  }

  show(record: PushRecord): void {
    const nowMs = this.#clock.monotonicMs();
    const hint = hintOf(record);
    const isNew = hint !== '' && hint !== this.#lastHint;
    if (!isNew && nowMs - this.#lastAtMs < lineEveryMs) return;
    this.#lastAtMs = nowMs;
    this.#lastHint = hint;
    const progress = `${settledOf(record)} of ${record.devices} done`;
    process.stderr.write(`${[progress, ...(hint === '' ? [] : [hint])].join('; ')}\n`);
  }
}

/** Returns the hint on an open push: a gateway that does not answer, and why; or that only quiet hours delay it. */
function hintOf(record: PushRecord): string {
  const { devices, errors, quietWaits } = record;
  if (typeof errors === 'string' && errors !== '') return errors;
  const open = devices - settledOf(record);
  return quietWaits > 0 && open > 0 && open <= quietWaits
    ? `${open} wait for the end of quiet hours, which the push does without this command too`
    : '';
}

function makeBar(): SingleBar {
  return new SingleBar(
    {
      format: '{bar} {percentage} % | {value} of {total} | {perSecond} per second{hint}',
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: false,
    },
    Presets.shades_classic,
  );
}

/** Updates the bar, which starts with the first known recipients; the total grows during planning. */
function show(bar: SingleBar | undefined, record: PushRecord, elapsedMs: number): void {
  if (!bar || record.devices === 0) return;
  const settled = settledOf(record);
  if (!bar.isActive) bar.start(record.devices, 0, { perSecond: 0, hint: '' });
  bar.setTotal(record.devices);
  const hint = hintOf(record);
  bar.update(settled, {
    perSecond: Math.round((settled * 1000) / Math.max(elapsedMs, 1)),
    hint: hint === '' ? '' : ` | ${hint}`,
  });
}
