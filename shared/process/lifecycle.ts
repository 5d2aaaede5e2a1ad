import { isWritten, type Logger } from './logging.ts';

type Closer = { name: string; close: () => Promise<unknown> | unknown };

/** Time limit of a resource that is registered after the stack has closed. */
const lateTimeoutMs = 1000;

/**
 * Stack of open resources, closed last in, first out. Register a closer immediately after opening a
 * resource.
 */
export class ClosingStack {
  readonly #closers: Closer[] = [];
  readonly #log: Logger;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * Registers a closer; closes the resource at once if the stack has closed (an interrupted start).
   */
  add(name: string, close: () => Promise<unknown> | unknown): void {
    if (this.#isClosed) void this.#closeOne({ name, close }, lateTimeoutMs);
    else this.#closers.push({ name, close });
  }

  /** True after `close` was called. */
  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /**
   * Closes every resource within the rest of `timeoutMs`, but at least a tenth of it each. Logs one
   * that fails or hangs, and closes the others. Further calls return the same promise.
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
      timer = setTimeout(
        () => reject(new Error(`not closed within ${Math.round(timeoutMs)} ms`)),
        timeoutMs,
      );
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
  /** Ends the process after closing; tests pass their own function. */
  exit?: (code: number) => void;
}

/**
 * Closes the stack and exits 0 on SIGINT, SIGTERM and the loss of a supervising parent; on an
 * uncaught error, logs it, closes the stack and exits 1.
 */
export function closeOnSignals({
  log,
  stack,
  exit = (code) => void leave(log, code),
}: ProcessHooks): void {
  let isStopping = false;
  const stop = (reason: string, code: number) => {
    if (isStopping) return;
    isStopping = true;
    log.info({ reason }, 'stopping');
    void stack.close().then(() => exit(code));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop(signal, 0));
  whenSupervisorExits(() => stop('supervisor gone', 0));
  const crash = (error: unknown) => {
    log.fatal({ err: error }, 'unexpected error');
    stop('unexpected error', 1);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);
}

/** Exits after the log is written; exits at once if standard output has no reader. */
async function leave(log: Logger, code: number): Promise<void> {
  if (await isWritten(log)) process.exit(code);
  process.kill(process.pid, 'SIGKILL');
}

/**
 * Calls `listener` when the process that started this one has exited: its IPC channel closes then.
 * Calls it at once if that happened earlier, while this process loaded its modules. Never calls it
 * without such a channel. Returns a function that removes the listener.
 */
export function whenSupervisorExits(listener: () => void): () => void {
  // `undefined` without a channel, `false` after its end.
  if (process.connected === false) listener();
  else if (process.connected) process.once('disconnect', listener);
  return () => void process.off('disconnect', listener);
}

/**
 * Sends a message to the supervisor, if there is one. Ignores a closed channel:
 * `whenSupervisorExits` tells of its end.
 */
export function notifySupervisor(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
