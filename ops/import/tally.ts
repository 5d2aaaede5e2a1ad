import { open } from 'node:fs/promises';
import type { ImportedClass } from './files.ts';
import { Needs } from './needs.ts';

/** Record that was not imported. The error names members, never values. */
export interface RefusedRecord {
  file: string;
  line: number;
  objectId?: string;
  error: string;
}

export interface ClassTally {
  /** Records that were read, without blank lines and headings. */
  read: number;
  imported: number;
  /** Records whose object id existed, from an earlier run or an earlier line; they stay unchanged. */
  alreadyThere: number;
  /** Those of them with a later `updatedAt` in the file. */
  newerInFile: number;
  refused: number;
}

/** Refusals in the report; the file of `--refused` gets all of them. */
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
    const known = this.classes.get(className);
    if (known) return known;
    const created = { read: 0, imported: 0, alreadyThere: 0, newerInFile: 0, refused: 0 };
    this.classes.set(className, created);
    return created;
  }

  refuse(className: ImportedClass, refused: RefusedRecord): void {
    this.of(className).refused += 1;
    if (this.refusals.length < maxListed) this.refusals.push(refused);
    if (this.#log) this.#unwritten.push(`${JSON.stringify(refused)}\n`);
  }

  /** Writes the refusals since the last call to the log. */
  async flush(): Promise<void> {
    const lines = this.#unwritten;
    this.#unwritten = [];
    if (lines.length > 0) await this.#log?.append(lines.join(''));
  }

  total(name: keyof ClassTally): number {
    return [...this.classes.values()].reduce((sum, tally) => sum + tally[name], 0);
  }
}

export interface RefusalLog {
  append(lines: string): Promise<void>;
  close(): Promise<void>;
}

/** Creates or empties the file for all refusals as JSON lines; only its owner can read it. */
export async function openRefusalLog(path: string): Promise<RefusalLog> {
  const handle = await open(path, 'w', 0o600);
  return { append: (lines) => handle.appendFile(lines), close: () => handle.close() };
}
