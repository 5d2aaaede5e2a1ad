import { ConfigError, environmentWarnings, readConfig } from '../shared/config/config.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../shared/process/lifecycle.ts';
import { createLogger } from '../shared/process/logging.ts';
import { returnMemoryWhenIdle, tuneDispatcherThreads } from '../shared/process/memory.ts';
import { startDispatcher } from './start.ts';

process.title = 'carillon dispatcher';

try {
  const config = readConfig();
  tuneDispatcherThreads(config.dispatcherThreads);
  const log = createLogger({ level: config.logLevel, name: 'dispatcher' });
  for (const warning of environmentWarnings()) log.warn(warning);
  const stack = new ClosingStack(log);
  closeOnSignals({ log, stack });
  await startDispatcher(config, log, { stack }).catch((error: unknown) => {
    // If the process is stopped while it starts, the start fails and the process exits as after any
    // other stop.
    if (!stack.isClosing) throw error;
  });
  returnMemoryWhenIdle();
  if (!stack.isClosing) notifySupervisor({ ready: true });
} catch (error) {
  process.stderr.write(
    `${error instanceof ConfigError ? error.message : `carillon dispatcher: ${error}`}\n`,
  );
  process.exit(1);
}
