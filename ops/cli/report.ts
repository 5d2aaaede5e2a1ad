import type { Command } from 'commander';

/** What a command has to say: a document for programs (`--json`), text for people. */
export interface Report {
  document: unknown;
  text: string;
  /** True when the work was done but its outcome is bad: the exit code is 1. */
  isBad?: boolean;
}

/** What a command hooks itself into. */
export interface Shell {
  program: Command;
  isJson(): boolean;
  /** Wraps an action: its report is printed, its outcome becomes the exit code. */
  act<A extends unknown[]>(work: (...args: A) => Promise<Report | undefined>): (...args: A) => Promise<void>;
}

/** The command was called wrongly: exit code 2 (protocol/operation.md#command-line). */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** The command was refused or failed: exit code 1. The message is a sentence for people. */
export class CommandFailure extends Error {
  override name = 'CommandFailure';
  /** Code of the service's refusal, where there was one. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}

export function printDocument(document: unknown): void {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

/** Prints a report the way it was asked for. */
export function printReport(report: Report, isJson: boolean): void {
  if (isJson) printDocument(report.document);
  else if (report.text !== '') process.stdout.write(`${report.text}\n`);
}

/**
 * Says what went wrong on standard error; under `--json` standard output gets the one document it was
 * promised as well.
 */
export function printFailure(error: unknown, isJson: boolean): void {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`carillon: ${message}\n`);
  if (!isJson) return;
  const code = error instanceof CommandFailure ? error.code : undefined;
  printDocument({ ...(code === undefined ? {} : { code }), error: message });
}

/** Rows as columns that line up; numbers stand on the right. */
export function table(headings: string[], rows: (string | number)[][]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => String(row[column] ?? '').length)),
  );
  const line = (cells: (string | number)[]) =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return typeof cell === 'number' ? String(cell).padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(headings), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
