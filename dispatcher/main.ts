import { setFlagsFromString } from 'node:v8';
import { ConfigError, environmentWarnings, readConfig } from '../shared/config/config.ts';
import { returnMemoryWhenIdle } from '../shared/process/idle-memory.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../shared/process/lifecycle.ts';
import { createLogger } from '../shared/process/logging.ts';
import { startDispatcher } from './start.ts';

process.title = 'carillon dispatcher';

/**
 * Threads up to which the heaps may double between two full collections, which take a fifth of the processor time otherwise.
 * With more of them the process would need more than 400 MB.
 */
const doublingThreads = 2;
/**
 * MB of each half of the space for new objects of a thread. In a large one most objects of a batch are garbage before it is full,
 * and are not copied: with 2 threads, 16 MB in place of 4 save a tenth to a quarter of the processor time of a dispatcher, and
 * take 50 MB. With 4 threads 4 or 8 MB save nothing measurable, and take up to 70 MB.
 */
const newSpace = { few: 16, many: 2 };

try {
  const config = readConfig();
  const isDoubling = config.dispatcherThreads <= doublingThreads;
  if (isDoubling) setFlagsFromString('--heap-growing-percent=100');
  // Applies to the threads that start later, not to this one (ops/local/node-flags.ts).
  setFlagsFromString(`--max-semi-space-size=${isDoubling ? newSpace.few : newSpace.many}`);
  const log = createLogger({ level: config.logLevel, name: 'dispatcher' });
  for (const warning of environmentWarnings()) log.warn(warning);
  const stack = new ClosingStack(log);
  closeOnSignals({ log, stack });
  await startDispatcher(config, log, { stack }).catch((error: unknown) => {
    // A start that is interrupted fails; the process then ends as after any other stop.
    if (!stack.isClosing) throw error;
  });
  returnMemoryWhenIdle();
  if (!stack.isClosing) notifySupervisor({ ready: true });
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : `carillon dispatcher: ${error}`}\n`);
  process.exit(1);
}
