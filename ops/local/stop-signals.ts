import { currentEnvironment } from '../../shared/config/config.ts';

/** Interval of the check that the npm process which started us still runs. */
const parentCheckMs = 1000;

/** Resolves on a signal to stop, or when the npm process that started us exits. */
export function stopOnSignals(): Promise<void> {
  return new Promise((resolveStop) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolveStop());
    if (currentEnvironment().npm_lifecycle_event === undefined) return;
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid !== parent) resolveStop();
    }, parentCheckMs);
    timer.unref();
  });
}
