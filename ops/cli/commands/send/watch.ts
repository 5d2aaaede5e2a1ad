import { type Clock, sleep } from '../../../../shared/clock.ts';
import { say } from '../../language.ts';
import { ProgressBar } from '../../report.ts';
import { isOpen, type PushRecord, settledOf } from './result.ts';

/** Polling interval: short at first, because most pushes are quick; then twice a second. */
const firstPauseMs = 50;
const longestPauseMs = 500;

/** Interval of lines when standard error is not a terminal. */
const lineEveryMs = 3000;

export interface WatchOptions {
  /**
   * Whether to show a bar on standard error, or a line every few seconds when that is not a
   * terminal.
   */
  isShown: boolean;
  clock: Clock;
}

/** Polls the record until the push is done or has failed. Returns the last record. */
export async function watchPush(
  read: () => Promise<PushRecord>,
  { isShown, clock }: WatchOptions,
): Promise<PushRecord> {
  const bar = isShown && process.stderr.isTTY ? new PushBar(clock) : undefined;
  const lines = isShown && !bar ? new ProgressLines(clock) : undefined;
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, longestPauseMs)) {
      const record = await read();
      bar?.show(record);
      if (!isOpen(record)) return record;
      lines?.show(record);
      await sleep(pauseMs);
    }
  } finally {
    bar?.stop();
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
    const progress = say('{settled} of {devices} done', {
      settled: settledOf(record),
      devices: record.devices,
    });
    process.stderr.write(`${[progress, ...(hint === '' ? [] : [hint])].join('; ')}\n`);
  }
}

/**
 * Returns the hint on an open push: a gateway that does not answer, and why; or that only quiet
 * hours delay it.
 */
function hintOf(record: PushRecord): string {
  const { devices, errors, quietWaits } = record;
  if (errors !== '') return errors;
  const open = devices - settledOf(record);
  return quietWaits > 0 && open > 0 && open <= quietWaits
    ? say('{n} wait for the end of quiet hours, which the push does without this command too', { n: open })
    : '';
}

/**
 * Progress of a push as a bar, which begins with the first known recipients; the total grows during
 * planning.
 */
class PushBar {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #bar: ProgressBar | undefined;
  #text = '';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  show(record: PushRecord): void {
    const { devices } = record;
    if (devices === 0) return;
    const settled = settledOf(record);
    const elapsedMs = Math.max(this.#clock.monotonicMs() - this.#startedAtMs, 1);
    const perSecond = Math.round((settled * 1000) / elapsedMs);
    const hint = hintOf(record);
    const progress = say('{settled} of {devices} | {perSecond} per second', { settled, devices, perSecond });
    this.#text = [progress, ...(hint === '' ? [] : [hint])].join(' | ');
    this.#bar ??= new ProgressBar({
      stream: process.stderr,
      marks: ['█', '░'],
      line: (shown, percentage) => `${shown} ${percentage} % | ${this.#text}`,
    });
    this.#bar.show(settled, devices);
  }

  stop(): void {
    this.#bar?.stop();
  }
}
