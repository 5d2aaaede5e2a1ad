import type { Reply } from '../../../client/client.ts';
import { argument, choice, flag, text, whole } from '../../arguments.ts';
import { command } from '../../command.ts';
import { gatewayName, say, words } from '../../language.ts';
import { row } from '../../row.ts';
import { table } from '../../table.ts';

/**
 * `carillon meta`, `processes`, `queues` and `jobs`: running processes, and jobs that make no
 * progress.
 */
export const stateCommands = [
  row('meta', 'describe the service: version, connectors with their credentials, options', {
    operation: 'getMeta',
    show: describe,
  }),
  row('processes', 'list the running api and dispatcher processes', {
    operation: 'listProcesses',
    columns: {
      kind: 'kind',
      host: 'host',
      pid: 'pid',
      version: 'version',
      threads: 'threads',
      connections: 'connections',
      started: 'startedAt',
    },
  }),
  row('queues', 'list the queues with their jobs', {
    operation: 'listQueues',
    columns: {
      queue: 'queue',
      ready: 'ready',
      waiting: 'waiting',
      active: 'active',
      'oldest (s)': ({ oldestSeconds }) => Math.round(oldestSeconds),
    },
  }),
  row('jobs', 'list jobs of a queue that are not done, the oldest first', {
    example: 'jobs plan --min-tries 3',
    operation: 'listJobs',
    path: { queue: argument('<queue>', 'as `queues` shows it') },
    query: {
      state: choice('--state <state>', 'only in this state', ['created', 'retry', 'active']),
      minTries: whole('--min-tries <n>', 'only jobs that were tried so often'),
      limit: whole('--limit <n>', 'largest number of results, at most 200', 1),
    },
    columns: {
      job: 'id',
      state: 'state',
      tries: 'tries',
      'not before': 'startAfter',
      push: 'pushId',
      app: 'appId',
      created: 'createdAt',
    },
    none: 'There are no such jobs.',
  }),
];

function describe({ version, publicUrl, connectors }: Reply<'getMeta'>): string {
  const rows = connectors.map(({ id, wire, credentials }) => [
    id,
    gatewayName(id),
    wire.join(' '),
    credentials === null ? '-' : say('yes'),
  ]);
  const headings = words('connector', 'gateway', 'vendor in installations', 'takes credentials');
  return `${say('Carillon {version} at {url}', { version, url: publicUrl })}\n\n${table(headings, rows)}`;
}

/** `carillon doctor`: checks the installation and recommends actions. */
export const doctorCommand = command(
  'doctor',
  'check environment, database, secrets, credentials and processes, and recommend actions',
  {
    example: 'doctor --production',
    takes: {
      production: flag('--production', 'also check what is usual in production and missing here'),
    },
    run: async ({ production }) => {
      // Loaded here, because other commands do not need the database or the gateways.
      const { runChecks } = await import('../../doctor/run-checks.ts');
      return runChecks(undefined, { isProduction: production === true });
    },
  },
);

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
