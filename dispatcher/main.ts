import { setFlagsFromString } from 'node:v8';
import { ConfigError, environmentWarnings, readConfig } from '../shared/config/config.ts';
import { returnMemoryWhenIdle } from '../shared/process/idle-memory.ts';
import { ClosingStack, closeOnSignals } from '../shared/process/lifecycle.ts';
import { createLogger } from '../shared/process/logging.ts';
import { notifySupervisor } from '../shared/process/supervisor.ts';
import { startDispatcher } from './start.ts';

process.title = 'carillon dispatcher';

/**
 * Threads up to which the heaps may double between two full collections, which take a fifth of the processor time otherwise.
 * With more of them the process would need more than 400 MB; the threads then also get half of the space for new objects,
 * which costs no measurable time and saves 20 MB with 4 threads.
 */
const doublingThreads = 2;

try {
  const config = readConfig();
  const isDoubling = config.dispatcherThreads <= doublingThreads;
  setFlagsFromString(isDoubling ? '--heap-growing-percent=100' : '--max-semi-space-size=2');
  const log = createLogger({ level: config.logLevel, name: 'dispatcher' });
  for (const warning of environmentWarnings()) log.warn(warning);
  const stack = new ClosingStack(log);
  closeOnSignals({ log, stack });
  await startDispatcher(config, log, { stack, hasTrialPushes: true }).catch((error: unknown) => {
    // A start that is interrupted fails; the process then ends as after any other stop.
    if (!stack.isClosing) throw error;
  });
  returnMemoryWhenIdle();
  if (!stack.isClosing) notifySupervisor({ ready: true });
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : `carillon dispatcher: ${error}`}\n`);
  process.exit(1);
}
