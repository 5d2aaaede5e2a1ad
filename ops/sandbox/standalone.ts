/**
 * Options of `npx carillon sandbox`, which runs only the gateways, for a service that runs
 * elsewhere.
 */
import { ClosingStack, closeOnSignals } from '../../shared/process/lifecycle.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { CommandFailure, type Report } from '../cli/report.ts';
import { table } from '../cli/table.ts';
import { type SandboxPage, startPage } from './all/page.ts';
import { keepSandboxSecrets, type Sandbox, startGateways } from './all/start.ts';

export interface StandaloneOptions {
  /** Port of the page. The gateways use the next ports. If absent, free ports are used. */
  port?: number;
  /** File with the keys that the gateways accept. If absent, each start creates new keys. */
  keep?: string;
}

/**
 * Starts gateways and page, which run until SIGINT or SIGTERM. Throws `CommandFailure` if the start
 * fails.
 */
export async function startStandalone({ keep, port }: StandaloneOptions): Promise<Report> {
  process.title = 'carillon sandbox';
  const log = createLogger({
    level: 'warn',
    name: 'sandbox',
    destination: { write: (line: string) => void process.stderr.write(line) },
  });
  const stack = new ClosingStack(log);
  try {
    const secrets = keep === undefined ? undefined : await keepSandboxSecrets(keep);
    const sandbox = await startGateways({
      ...(secrets === undefined ? {} : { secrets }),
      ...(port === undefined ? {} : { firstPort: port + 1 }),
    });
    stack.add('gateways', () => sandbox.close());
    const page = await startPage(sandbox.instances, port === undefined ? {} : { port });
    stack.add('page', () => page.close());
    closeOnSignals({ log, stack });
    return reportOf(sandbox, page);
  } catch (error) {
    await stack.close();
    throw new CommandFailure(
      `The sandbox cannot start: ${error instanceof Error ? error.message : error}`,
    );
  }
}

function reportOf({ instances }: Sandbox, page: SandboxPage): Report {
  const rows = instances.map(({ connector, title, url, vendor }) => [
    title,
    connector,
    vendor ?? '-',
    url,
  ]);
  const example = (connector: string) =>
    `curl -s ${page.url}/${connector}/profile.json | npx carillon profile put <app id> ${connector} -`;
  return {
    document: {
      pid: process.pid,
      page: page.url,
      gateways: instances.map(({ connector, credentials, title, url, vendor }) => ({
        connector,
        title,
        vendor,
        url,
        credentials,
      })),
    },
    text: [
      table(['gateway', 'profile', 'vendor', 'address'], rows),
      '',
      `what each received   ${page.url}/`,
      '',
      '# profiles that send to them (--json prints the credentials)',
      ...instances.map(({ connector }) => example(connector)),
      '',
      'Ctrl-C ends them.',
    ].join('\n'),
  };
}
