import type { WriteStream } from 'node:tty';
import type { Command } from 'commander';
import { say } from './language.ts';
import { printable } from './table.ts';

/** Result of a command: a document for programs (`--json`) and a text for people. */
export interface Report {
  document: unknown;
  text: string;
  /** True if the command ran but its outcome is bad. The exit code is then 1. */
  isBad?: boolean;
}

/** Program to which commands add themselves. */
export interface Shell {
  program: Command;
  isJson(): boolean;
  /** Wraps an action. The wrapper prints the report and sets the exit code. */
  act<A extends unknown[]>(
    work: (...args: A) => Promise<Report | undefined>,
  ): (...args: A) => Promise<void>;
}

/** Adds one or more commands to the program. */
export type AddCommand = (shell: Shell) => void;

/** Thrown for wrong usage: exit code 2 (protocol/operation.md#command-line). */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Thrown if a command is refused or fails: exit code 1. The message is for people. */
export class CommandFailure extends Error {
  override name = 'CommandFailure';
  /** Error code of the service, if it returned one. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

export function printDocument(document: unknown): void {
  process.stdout.write(`${printable(JSON.stringify(document))}\n`);
}

/** Prints a report as text or as JSON. */
export function printReport(report: Report, isJson: boolean): void {
  if (isJson) printDocument(report.document);
  else if (report.text !== '') process.stdout.write(`${printable(report.text, '\n\t')}\n`);
}

/** Prints progress or an error on standard error. */
export const printLine = (text: string): boolean =>
  process.stderr.write(`${printable(text, '\n\t')}\n`);

/** Prints an error on standard error. With `--json`, also prints a document on standard output. */
export function printFailure(error: unknown, isJson: boolean): void {
  const message = error instanceof Error ? error.message : String(error);
  printLine(`carillon: ${message}`);
  if (!isJson) return;
  const code = error instanceof CommandFailure ? error.code : undefined;
  printDocument({ ...(code === undefined ? {} : { code }), error: message });
}

const unitSeconds = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
type Unit = keyof typeof unitSeconds;

/** ISO 8601 with a date, a time of day and a zone; seconds are optional. */
const momentPattern = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})$/;

/**
 * Parses a time: ISO 8601 with a zone, or a duration from now such as `+10m` (units s, m, h, d).
 * Returns the time in ISO 8601. `nowMs` is in epoch milliseconds. Throws `UsageError` with the
 * option's name if the text is invalid or the time is in the past.
 */
export function futureTime(option: string, text: string, nowMs: number): string {
  const timeMs = spanMs(text) === undefined ? momentMs(text) : nowMs + (spanMs(text) ?? 0);
  if (timeMs === undefined || !Number.isFinite(timeMs))
    throw new UsageError(
      say('{option} expects a time such as 2027-01-31T12:00Z, or a span such as +10m', { option }),
    );
  if (timeMs <= nowMs) throw new UsageError(say('{option} names a time that is past', { option }));
  return new Date(timeMs).toISOString();
}

/** Like `futureTime`, but accepts any time and no durations. */
export function anyTime(option: string, text: string): string {
  const timeMs = momentMs(text);
  if (timeMs === undefined)
    throw new UsageError(say('{option} expects a time such as 2027-01-31T12:00Z', { option }));
  return new Date(timeMs).toISOString();
}

/** Like `futureTime`, but accepts only times in the past and no durations. */
export function pastTime(option: string, text: string, nowMs: number): string {
  const time = anyTime(option, text);
  if (Date.parse(time) > nowMs)
    throw new UsageError(say('{option} names a time in the future', { option }));
  return time;
}

function spanMs(text: string): number | undefined {
  const [, amount, unit] = /^\+(\d{1,6})([smhd])$/.exec(text) ?? [];
  return isUnit(unit) ? Number(amount) * unitSeconds[unit] * 1000 : undefined;
}

const isUnit = (text: string | undefined): text is Unit =>
  text !== undefined && text in unitSeconds;

function momentMs(text: string): number | undefined {
  const timeMs = momentPattern.test(text) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

const width = 40;
/** Interval between lines if the output is not a terminal. */
const lineEveryMs = 500;
const clearToEnd = '\x1b[K';

interface ProgressBarOptions {
  stream: WriteStream;
  /** Characters for the finished and for the open part of the bar. */
  marks: readonly [done: string, open: string];
  /** Returns the line that contains the bar. */
  line(bar: string, percentage: number): string;
  /** True to write lines if the output is not a terminal. In a terminal, one line is updated. */
  writesLines?: boolean;
}

/** Progress line that overwrites itself. Ends with `stop`. */
export class ProgressBar {
  readonly #options: ProgressBarOptions;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #line = '';

  constructor(options: ProgressBarOptions) {
    this.#options = options;
  }

  /** Shows the progress. `done` may exceed `total`. */
  show(done: number, total: number): void {
    const { stream, marks, line, writesLines } = this.#options;
    const share = Math.min(done / Math.max(total, 1), 1);
    const full = Math.round(share * width);
    const bar = marks[0].repeat(full) + marks[1].repeat(width - full);
    this.#line = printable(line(bar, Math.floor(share * 100)));
    if (stream.isTTY) stream.write(`\r${this.#line}${clearToEnd}`);
    else if (writesLines && performance.now() - this.#writtenAtMs >= lineEveryMs) this.#writeLine();
  }

  /** Leaves the last state on its own line. */
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
