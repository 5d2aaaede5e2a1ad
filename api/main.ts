import { ConfigError, environmentWarnings, readConfig } from '../shared/config/config.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../shared/process/lifecycle.ts';
import { createLogger } from '../shared/process/logging.ts';
import { returnMemoryWhenIdle } from '../shared/process/memory.ts';
import { startApi } from './start.ts';

process.title = 'carillon api';

try {
  const config = readConfig();
  const log = createLogger({ level: config.logLevel, name: 'api' });
  for (const warning of environmentWarnings()) log.warn(warning);
  const stack = new ClosingStack(log);
  closeOnSignals({ log, stack });
  await startApi(config, log, { stack }).catch((error: unknown) => {
    // A signal during the start makes it fail. The process then stops as usual.
    if (!stack.isClosing) throw error;
  });
  returnMemoryWhenIdle();
  if (!stack.isClosing) notifySupervisor({ ready: true });
} catch (error) {
  process.stderr.write(
    `${error instanceof ConfigError ? error.message : `carillon api: ${error}`}\n`,
  );
  process.exit(1);
}
