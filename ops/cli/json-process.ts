import { startApi } from '../../api/start.ts';
import { startDispatcher } from '../../dispatcher/start.ts';
import { readConfig } from '../../shared/config/config.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../shared/process/lifecycle.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { printDocument } from './report.ts';

/**
 * Runs an api or a dispatcher in this process with `--json`. Prints one document on standard output
 * when the process is ready. Writes the log to standard error. Throws `ConfigError` or the error of
 * the start.
 */
export async function startJsonProcess(name: 'api' | 'dispatcher'): Promise<void> {
  process.title = `carillon ${name}`;
  const config = readConfig();
  const destination = { write: (line: string) => void process.stderr.write(line) };
  const log = createLogger({ level: config.logLevel, name, destination });
  const stack = new ClosingStack(log);
  closeOnSignals({ log, stack });
  if (name === 'api') {
    const { port } = await startApi(config, log, { stack });
    printDocument({ process: name, pid: process.pid, port, url: config.publicUrl });
  } else {
    const { metricsPort } = await startDispatcher(config, log, { stack });
    printDocument({ process: name, pid: process.pid, metricsPort });
  }
  notifySupervisor({ ready: true });
}
