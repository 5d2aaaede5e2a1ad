import { isDoneWithin } from '../clock.ts';
import { isWritten, type Logger } from './logging.ts';

type Closer = { name: string; close: () => Promise<unknown> | unknown };

/** Timeout for closing a resource that is registered after the stack was closed. */
const lateTimeoutMs = 1000;

/** Stack of open resources, closed in reverse order. Register a resource right after opening it. */
export class ClosingStack {
  readonly #closers: Closer[] = [];
  readonly #log: Logger;
  #closing: Promise<void> | undefined;
  #isClosed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /**
   * Registers a resource. If the stack is already closed, because the start was interrupted, closes
   * the resource at once.
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
   * Closes all resources within `timeoutMs`. Each resource gets the remaining time, but at least a
   * tenth of `timeoutMs`. If a resource fails or hangs, logs this and continues. Further calls
   * return the same promise.
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

  async #closeOne({ name, close }: Closer, timeoutMs: number): Promise<void> {
    const warn = (err: unknown) => this.#log.warn({ err, what: name }, 'could not close in time');
    const closed = Promise.resolve().then(close).catch(warn);
    if (!(await isDoneWithin(closed, timeoutMs)))
      warn(new Error(`not closed within ${Math.round(timeoutMs)} ms`));
  }
}

export interface ProcessHooks {
  log: Logger;
  stack: ClosingStack;
  /** Ends the process after closing. Tests pass their own function. */
  exit?: (code: number) => void;
}

/**
 * Closes the stack and exits with 0 on SIGINT, SIGTERM, or when the supervising parent process has
 * exited. On an uncaught error, logs it, closes the stack and exits with 1.
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

/** Exits after the log was written. If standard output has no reader, exits at once. */
async function leave(log: Logger, code: number): Promise<void> {
  if (await isWritten(log)) process.exit(code);
  process.kill(process.pid, 'SIGKILL');
}

/**
 * Calls `listener` when the parent process has exited, which closes the IPC channel. If this
 * happened before, while this process loaded its modules, calls it at once. Never calls it if there
 * is no IPC channel. Returns a function that removes the listener.
 */
export function whenSupervisorExits(listener: () => void): () => void {
  // `process.connected` is `undefined` without a channel, and `false` after the channel was closed.
  if (process.connected === false) listener();
  else if (process.connected) process.once('disconnect', listener);
  return () => void process.off('disconnect', listener);
}

/**
 * Sends a message to the supervisor, if there is one. Ignores a closed channel, because
 * `whenSupervisorExits` handles it.
 */
export function notifySupervisor(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
