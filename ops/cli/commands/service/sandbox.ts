import { wholeNumber } from '../../input.ts';
import type { Shell } from '../../report.ts';

interface Options {
  port?: string;
  keep?: string;
}

/** `sandbox`: stand-ins for all gateways, without a service. */
export function addSandboxCommand({ program, act }: Shell): void {
  program
    .command('sandbox')
    .description('start stand-ins for all gateways, with a page that shows what each received')
    .option('--port <port>', 'of the page; the gateways take the ports behind it (default: free ones)')
    .option('--keep <file>', 'keeps what the gateways accept, so that profiles outlive a restart')
    .action(
      act(async ({ keep, port }: Options) => {
        const { startAlone } = await import('../../../sandbox/alone.ts');
        return startAlone({
          ...(port === undefined ? {} : { port: wholeNumber('--port', port, 1) }),
          ...(keep === undefined ? {} : { keep }),
        });
      }),
    );
}
