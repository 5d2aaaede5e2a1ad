import { text, whole } from '../../arguments.ts';
import { command } from '../../command.ts';

/** `carillon sandbox`: simulated gateways without a service. */
export const sandboxCommand = command(
  'sandbox',
  'start simulated gateways, with a page that shows the messages that each received',
  {
    example: 'sandbox --port 9000 --keep sandbox.json',
    takes: {
      port: whole(
        '--port <port>',
        'port of the page; the gateways take the next ports (default: free ones)',
        1,
      ),
      keep: text(
        '--keep <file>',
        'file for the accepted credentials, so that profiles stay valid after a restart',
      ),
    },
    run: async (options) => {
      const { startStandalone } = await import('../../../sandbox/standalone.ts');
      return startStandalone(options);
    },
  },
);
