import type { WriteStream } from 'node:tty';

const width = 40;
/** Interval of lines where the output is no terminal. */
const lineEveryMs = 500;
const clearToEnd = '\x1b[K';

export interface ProgressBarOptions {
  stream: WriteStream;
  /** Characters of the done and of the open part. */
  marks: readonly [done: string, open: string];
  /** Writes a line around the bar. */
  line(bar: string, percentage: number): string;
  /** Whether lines appear where the output is no terminal; a terminal keeps one line. */
  writesLines?: boolean;
}

/** A line that shows how much is done, and is written over itself. Ends with `stop`. */
export class ProgressBar {
  readonly #options: ProgressBarOptions;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #line = '';

  constructor(options: ProgressBarOptions) {
    this.#options = options;
  }

  /** Shows a state; `done` may be more than `total`. */
  show(done: number, total: number): void {
    const { stream, marks, line, writesLines } = this.#options;
    const share = Math.min(done / Math.max(total, 1), 1);
    const full = Math.round(share * width);
    this.#line = line(marks[0].repeat(full) + marks[1].repeat(width - full), Math.floor(share * 100));
    if (stream.isTTY) stream.write(`\r${this.#line}${clearToEnd}`);
    else if (writesLines && performance.now() - this.#writtenAtMs >= lineEveryMs) this.#writeLine();
  }

  /** Leaves the last state on a line of its own. */
  stop(): void {
    const { stream, writesLines } = this.#options;
    if (stream.isTTY) stream.write('\n');
    else if (writesLines) this.#writeLine();
  }

  #writeLine(): void {
    this.#writtenAtMs = performance.now();
    this.#options.stream.write(`${this.#line}\n`);
  }
}
