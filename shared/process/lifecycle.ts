import { isWritten, type Logger } from './logging.ts';

type Closer = { name: string; close: () => Promise<unknown> | unknown };

/** For what is opened too late to be waited for. */
const lateTimeoutMs = 1000;

/**
 * What is open, closed last in first out. Whatever opens something puts it here in the same breath.
 */
export class ClosingStack {
  readonly #closers: Closer[] = [];
  readonly #log: Logger;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** What is opened after everything was closed (a start that was interrupted) is closed at once. */
  add(name: string, close: () => Promise<unknown> | unknown): void {
    if (this.#isClosed) void this.#closeOne({ name, close }, lateTimeoutMs);
    else this.#closers.push({ name, close });
  }

  /** Whether `close` was called. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /**
   * Closes everything, each with what is left of `timeoutMs` but at least a tenth of it; one that fails or
   * hangs is logged and does not keep the others open. Calling it again gives the same promise.
   */
  close(timeoutMs = 9000): Promise<void> {
    this.#closing ??= this.#closeAll(timeoutMs);
    return this.#closing;
  }

  async #closeAll(timeoutMs: number): Promise<void> {
    const endsAtMs = performance.now() + timeoutMs;
    for (let closer = this.#closers.pop(); closer; closer = this.#closers.pop()) {
      const leftMs = Math.max(endsAtMs - performance.now(), timeoutMs / 10);
      await this.#closeOne(closer, leftMs);
    }
    this.#isClosed = true;
  }

  async #closeOne(closer: Closer, timeoutMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const expiry = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not closed within ${Math.round(timeoutMs)} ms`)), timeoutMs);
    });
    try {
      await Promise.race([Promise.resolve().then(closer.close), expiry]);
    } catch (error) {
      this.#log.warn({ err: error, what: closer.name }, 'could not close in time');
    } finally {
      clearTimeout(timer);
    }
  }
}

export interface ProcessHooks {
  log: Logger;
  stack: ClosingStack;
  /** Ends the process when all is closed; tests hand in their own. */
  exit?: (code: number) => void;
}

/**
 * Ties a process to its end: SIGINT, SIGTERM and the loss of a supervising parent close the stack and
 * exit 0; an error nobody caught is logged, closes the stack and exits 1.
 */
export function closeOnSignals({ log, stack, exit = (code) => void leave(log, code) }: ProcessHooks): void {
  let isStopping = false;
  const stop = (reason: string, code: number) => {
    if (isStopping) return;
    isStopping = true;
    log.info({ reason }, 'stopping');
    void stack.close().then(() => exit(code));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal, 0));
  // Under `npm start` the supervisor holds an IPC channel; its end means that the supervisor is gone.
  if (process.channel) process.on('disconnect', () => stop('supervisor gone', 0));
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'unexpected error');
    stop('unexpected error', 1);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);
}

/** An orderly exit waits for what is being written; where nobody reads that any more, it would wait for ever. */
async function leave(log: Logger, code: number): Promise<void> {
  if (await isWritten(log)) process.exit(code);
  process.kill(process.pid, 'SIGKILL');
}

/**
 * Tells the supervisor something, if there is one. That it went away in the same moment is told by the end of
 * the channel, and must not count as a defect of this process.
 */
export function notifySupervisor(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
