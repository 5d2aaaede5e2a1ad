import type { Command } from 'commander';

/** Result of a command: a document for programs (`--json`), text for people. */
export interface Report {
  document: unknown;
  text: string;
  /** Whether the command ran but its outcome is bad: the exit code is 1. */
  isBad?: boolean;
}

/** Program that commands add themselves to. */
export interface Shell {
  program: Command;
  isJson(): boolean;
  /** Wraps an action so that its report is printed and its outcome becomes the exit code. */
  act<A extends unknown[]>(work: (...args: A) => Promise<Report | undefined>): (...args: A) => Promise<void>;
}

/** Adds a command, or several, to the program. */
export type AddCommand = (shell: Shell) => void;

/** Error for wrong usage: exit code 2 (protocol/operation.md#command-line). */
export class UsageError extends Error {
  override name = 'UsageError';
}

/** Error for a command that was refused or failed: exit code 1. The message is for people. */
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
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

/** Prints a report as text or as JSON. */
export function printReport(report: Report, isJson: boolean): void {
  if (isJson) printDocument(report.document);
  else if (report.text !== '') process.stdout.write(`${report.text}\n`);
}

/** Prints an error on standard error; with `--json` also a document on standard output. */
export function printFailure(error: unknown, isJson: boolean): void {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`carillon: ${message}\n`);
  if (!isJson) return;
  const code = error instanceof CommandFailure ? error.code : undefined;
  printDocument({ ...(code === undefined ? {} : { code }), error: message });
}
