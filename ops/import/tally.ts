import { open } from 'node:fs/promises';
import type { ImportedClass } from './files.ts';
import { Needs } from './needs.ts';

/** A record that was not imported. The sentence names members, never values. */
export interface RefusedRecord {
  file: string;
  line: number;
  objectId?: string;
  error: string;
}

export interface ClassTally {
  /** Records read, blank lines and headings left out. */
  read: number;
  imported: number;
  /** Their object id was there before, from an earlier run or an earlier line; they were not touched. */
  alreadyThere: number;
  /** Of those: later in the file than here. */
  newerInFile: number;
  refused: number;
}

/** So many refusals are told in the report; all of them go to the file that was asked for. */
const maxTold = 100;

/** What an import did so far. Its memory does not grow with the number of refusals. */
export class Tally {
  readonly classes = new Map<ImportedClass, ClassTally>();
  readonly needs = new Needs();
  /** Installations that were last seen longer ago than the app's `installationValidityDays`. */
  idleInstallations = 0;
  readonly refusals: RefusedRecord[] = [];
  readonly #log: RefusalLog | undefined;
  #untold: string[] = [];

  constructor(log?: RefusalLog) {
    this.#log = log;
  }

  of(className: ImportedClass): ClassTally {
    const known = this.classes.get(className);
    if (known) return known;
    const made = { read: 0, imported: 0, alreadyThere: 0, newerInFile: 0, refused: 0 };
    this.classes.set(className, made);
    return made;
  }

  refuse(className: ImportedClass, refused: RefusedRecord): void {
    this.of(className).refused += 1;
    if (this.refusals.length < maxTold) this.refusals.push(refused);
    if (this.#log) this.#untold.push(`${JSON.stringify(refused)}\n`);
  }

  /** Writes down the refusals since the last time. */
  async flush(): Promise<void> {
    const lines = this.#untold;
    this.#untold = [];
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

/** A file with all refusals as JSON lines, begun anew; readable by its owner only. */
export async function openRefusalLog(path: string): Promise<RefusalLog> {
  const handle = await open(path, 'w', 0o600);
  return { append: (lines) => handle.appendFile(lines), close: () => handle.close() };
}
