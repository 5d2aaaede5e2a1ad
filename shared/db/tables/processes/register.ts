import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from '../../../process/logging.ts';
import { packageVersion } from '../../../process/version.ts';
import type { Handle } from '../../pool.ts';
import { forgetProcess, type ProcessReport, renewProcess, type SeenProcess } from './processes.ts';

/** Interval in which a process renews its row. */
const renewMs = 5000;
/** Age after which a process counts as gone: it missed several renewals. */
export const processGoneMs = 20_000;

/** Facts of a process that change. */
export type ProcessFacts = Pick<SeenProcess, 'threads' | 'connections'> & { report?: ProcessReport };

/** Keeps the row of this process in the register of running processes (protocol/admin-api.md#processes). */
export class ProcessRegister {
  readonly #db: Handle;
  readonly #log: Logger;
  readonly #facts: () => ProcessFacts | Promise<ProcessFacts>;
  readonly #process: Omit<SeenProcess, 'startedAt' | 'seenAt' | 'threads' | 'connections'>;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(
    db: Handle,
    {
      kind,
      log,
      facts,
    }: { kind: SeenProcess['kind']; log: Logger; facts: () => ProcessFacts | Promise<ProcessFacts> },
  ) {
    this.#db = db;
    this.#log = log;
    this.#facts = facts;
    const { pid } = process;
    this.#process = { id: randomUUID(), kind, host: hostname(), pid, version: packageVersion() };
  }

  /** Writes the row, and renews it until `close`. Never rejects: without a database the next renewal tries again. */
  start(): Promise<void> {
    this.#renewal = this.#renew();
    return this.#renewal;
  }

  /** Deletes the row, unless the database is away. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#renewal;
    await forgetProcess(this.#db, this.#process.id).catch(() => undefined);
  }

  async #renew(): Promise<void> {
    try {
      await renewProcess(this.#db, { ...this.#process, ...(await this.#facts()) }, processGoneMs);
    } catch (error) {
      this.#log.debug({ err: error }, 'could not renew the row of this process');
    }
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#renewal = this.#renew();
    }, renewMs).unref();
  }
}
