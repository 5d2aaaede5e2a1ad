import { wholeNumber } from '../../input.ts';
import type { Shell } from '../../report.ts';

interface Options {
  port?: string;
  keep?: string;
}

/** Adds `carillon sandbox`: simulated gateways without a service. */
export function addSandboxCommand({ program, act }: Shell): void {
  program
    .command('sandbox')
    .description('start simulated gateways, with a page that shows the messages that each received')
    .option('--port <port>', 'port of the page; the gateways take the next ports (default: free ones)')
    .option('--keep <file>', 'file for the accepted credentials, so that profiles stay valid after a restart')
    .action(
      act(async ({ keep, port }: Options) => {
        const { startStandalone: startAlone } = await import('../../../sandbox/standalone.ts');
        return startAlone({
          ...(port === undefined ? {} : { port: wholeNumber('--port', port, 1) }),
          ...(keep === undefined ? {} : { keep }),
        });
      }),
    );
}
