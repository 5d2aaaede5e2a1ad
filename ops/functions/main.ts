import {
  ConfigError,
  currentEnvironment,
  readFunctionsConfig,
} from '../../shared/config/config.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../shared/process/lifecycle.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { FunctionHost } from './host.ts';

/**
 * Entry point of the process that runs a folder of functions
 * (develop/functions.md#the-embedded-host).
 */
process.title = 'carillon functions';

try {
  const { dir, port, token, apiUrl, logLevel } = readFunctionsConfig();
  const log = createLogger({ level: logLevel, name: 'functions' });
  const stack = new ClosingStack(log);
  closeOnSignals({ log, stack });
  const env = currentEnvironment();
  const host = new FunctionHost({ dir, port, token, apiUrl, env, log: (line) => log.info(line) });
  stack.add('host', () => host.close());
  notifySupervisor({ ready: true, port: await host.start() });
} catch (error) {
  process.stderr.write(
    `${error instanceof ConfigError ? error.message : `carillon functions: ${error}`}\n`,
  );
  process.exit(1);
}
