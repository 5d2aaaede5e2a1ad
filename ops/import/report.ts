import { open } from 'node:fs/promises';
import type { Clock } from '../../shared/clock.ts';
import { say, section, sentences, words } from '../cli/language.ts';
import { ProgressBar, type Report } from '../cli/report.ts';
import { table } from '../cli/table.ts';
import type { ExportFile, FoundFiles, ImportedClass } from './files.ts';
import { Needs } from './needs.ts';

/** Record that was not imported. The error names members but quotes no values. */
interface RefusedRecord {
  file: string;
  line: number;
  objectId?: string;
  error: string;
}

interface ClassTally {
  /** Records that were read. Blank lines and headings do not count. */
  read: number;
  imported: number;
  /**
   * Records whose object id already exists, from an earlier run or an earlier line. They stay
   * unchanged.
   */
  alreadyThere: number;
  /** Number of existing records that have a later `updatedAt` in the file. */
  newerInFile: number;
  refused: number;
}

/** Limit on the refusals in the report. The file of `--refused` contains all refusals. */
const maxListed = 100;

/** Counts of an import so far. Its memory does not grow with the number of refusals. */
export class Tally {
  readonly classes = new Map<ImportedClass, ClassTally>();
  readonly needs = new Needs();
  /** Installations that were last seen before the app's `installationValidityDays`. */
  idleInstallations = 0;
  readonly refusals: RefusedRecord[] = [];
  readonly #log: RefusalLog | undefined;
  #unwritten: string[] = [];

  constructor(log?: RefusalLog) {
    this.#log = log;
  }

  of(className: ImportedClass): ClassTally {
    const existing = this.classes.get(className);
    if (existing) return existing;
    const created = { read: 0, imported: 0, alreadyThere: 0, newerInFile: 0, refused: 0 };
    this.classes.set(className, created);
    return created;
  }

  refuse(className: ImportedClass, refused: RefusedRecord): void {
    this.of(className).refused += 1;
    if (this.refusals.length < maxListed) this.refusals.push(refused);
    if (this.#log) this.#unwritten.push(`${JSON.stringify(refused)}\n`);
  }

  /** Writes the refusals since the last call to the log file. */
  async flush(): Promise<void> {
    const lines = this.#unwritten;
    this.#unwritten = [];
    if (lines.length > 0) await this.#log?.append(lines.join(''));
  }

  total(name: keyof ClassTally): number {
    return [...this.classes.values()].reduce((sum, tally) => sum + tally[name], 0);
  }
}

interface RefusalLog {
  append(lines: string): Promise<void>;
  close(): Promise<void>;
}

/** Creates or empties the file for refusals (JSON lines). Only its owner can read it. */
export async function openRefusalLog(path: string): Promise<RefusalLog> {
  const handle = await open(path, 'w', 0o600);
  return { append: (lines) => handle.appendFile(lines), close: () => handle.close() };
}

export interface Outcome {
  appId: string;
  isDry: boolean;
  found: FoundFiles;
  tally: Tally;
  seconds: number;
  /** Path of the file with all refusals. */
  refusedTo: string | undefined;
  validityDays: number;
  /** Reason if the import ended early. */
  failure?: string | undefined;
}

/**
 * Creates the report of an import: a document and a text. The outcome is bad if records were
 * refused or the import failed.
 */
export function reportOf(outcome: Outcome): Report {
  const { tally, failure } = outcome;
  const isBad = tally.total('refused') > 0 || failure !== undefined;
  return { document: documentOf(outcome), text: textOf(outcome), isBad };
}

const unlisted = (tally: Tally): number => tally.total('refused') - tally.refusals.length;

function documentOf({ appId, isDry, found, tally, seconds, failure }: Outcome): object {
  return {
    appId,
    dryRun: isDry,
    classes: Object.fromEntries(tally.classes),
    idleInstallations: tally.idleInstallations,
    refusals: tally.refusals,
    refusalsNotListed: unlisted(tally),
    skippedFiles: found.skipped,
    seconds,
    ...(failure === undefined ? {} : { error: failure }),
  };
}

function textOf(outcome: Outcome): string {
  const { tally, isDry, found, seconds } = outcome;
  const rows = [...tally.classes].map(([name, counts]) => [
    name,
    counts.read,
    counts.imported,
    counts.alreadyThere,
    counts.refused,
  ]);
  const headings = words(
    'class',
    'read',
    isDry ? 'would be imported' : 'imported',
    'already there',
    'refused',
  );
  return [
    table(headings, rows),
    sentences(
      say(isDry ? 'Checked; nothing was written.' : 'Done.'),
      say('{seconds} s.', { seconds: seconds.toFixed(1) }),
    ),
    ...notes(outcome),
    ...section(
      'Refused:',
      tally.refusals.map(
        ({ file, line, objectId, error }) =>
          `${file}:${line}${objectId === undefined ? '' : ` (${objectId})`}: ${error}`,
      ),
    ),
    ...section(
      'Files left out:',
      found.skipped.map(({ path, reason }) => `${path} ${reason}`),
    ),
  ].join('\n');
}

function notes({ tally, refusedTo, validityDays, failure }: Outcome): string[] {
  const newer = tally.total('newerInFile');
  const more = unlisted(tally);
  const all =
    refusedTo === undefined
      ? say('give --refused <file> for all of them')
      : say('all are in {file}', { file: refusedTo });
  return [
    ...(failure === undefined ? [] : [say('Not finished: {failure}', { failure })]),
    ...(newer > 0
      ? [
          say(
            '{n} of those that were there already were changed later in the file; they were left as they are.',
            { n: newer },
          ),
        ]
      : []),
    ...(tally.idleInstallations > 0
      ? [
          say(
            '{n} installations were last seen more than {days} days ago: they count as seen at the import, and are deleted {days} days after it unless they call.',
            { n: tally.idleInstallations, days: validityDays },
          ),
        ]
      : []),
    ...(more > 0 ? [say('{n} more refusals are not listed: {all}.', { n: more, all })] : []),
  ];
}

interface Progress {
  /** Takes the number of bytes read so far from all files. */
  show(bytes: number): void;
  stop(): void;
}

interface ProgressOptions {
  files: ExportFile[];
  tally: Tally;
  isShown: boolean;
  clock: Clock;
}

/**
 * Shows a progress bar on standard error if it is a terminal. The bar counts bytes, because the
 * number of records is unknown.
 */
export function showProgress({ files, tally, isShown, clock }: ProgressOptions): Progress {
  if (!isShown) return { show: () => undefined, stop: () => undefined };
  const startedAtMs = clock.monotonicMs();
  const line = (shown: string, percentage: number) => {
    const records = tally.total('read');
    const elapsedMs = Math.max(clock.monotonicMs() - startedAtMs, 1);
    const perSecond = Math.round((records * 1000) / elapsedMs);
    const counts = say('{records} records, {refused} refused | {perSecond} per second', {
      records,
      perSecond,
      refused: tally.total('refused'),
    });
    return `${shown} ${percentage} % | ${counts}`;
  };
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const bar = new ProgressBar({ stream: process.stderr, marks: ['█', '░'], line });
  bar.show(0, total);
  return { show: (bytes) => bar.show(bytes, total), stop: () => bar.stop() };
}
