import { currentEnvironment } from '../../shared/config/config.ts';

/** Interval of the check that the npm process which started us still runs. */
const parentCheckMs = 1000;

/**
 * Resolves on a signal to stop, when the npm process that started us exits, or when the terminal or the reader of our output
 * is gone.
 */
export function stopOnSignals(): Promise<void> {
  return new Promise((resolveStop) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolveStop());
    // In place of the listener of other commands, which exits at once: the stop takes some seconds, and prints lines.
    for (const output of [process.stdout, process.stderr])
      output.removeAllListeners('error').on('error', () => resolveStop());
    if (currentEnvironment().npm_lifecycle_event === undefined) return;
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid !== parent) resolveStop();
    }, parentCheckMs);
    timer.unref();
  });
}
