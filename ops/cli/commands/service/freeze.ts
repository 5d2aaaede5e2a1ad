import { z } from 'zod';
import { type Report, type Shell, table } from '../../report.ts';
import { connect, part } from '../../service.ts';

const freeze = z.looseObject({
  appId: z.string().nullable(),
  reason: z.string(),
  by: z.string(),
  since: z.string(),
});

interface FreezeOptions {
  app?: string;
  reason?: string;
}

/** Adds `carillon freeze`, `unfreeze` and `freezes`: hold the pushes of an app or of the whole service. */
export function addFreezeCommands({ program, act }: Shell): void {
  program
    .command('freeze')
    .description('hold all pushes of the service, or of one app: those being sent stop within a second')
    .option('--app <id>', 'only this app')
    .option('--reason <text>', 'why, for the other operators')
    .action(act(hold));
  program
    .command('unfreeze')
    .description('end a freeze: the held pushes go on in their order')
    .option('--app <id>', 'of this app')
    .action(act(release));
  program.command('freezes').description('what is frozen, since when and why').action(act(list));
}

const pathOf = ({ app }: FreezeOptions) => (app === undefined ? '/freeze' : `/apps/${part(app)}/freeze`);

async function hold(options: FreezeOptions): Promise<Report> {
  const body = options.reason === undefined ? {} : { reason: options.reason };
  const reply = await (await connect()).admin('PUT', pathOf(options), body);
  return { document: reply, text: table(headings, [rowOf(freeze.parse(reply))]) };
}

async function release(options: FreezeOptions): Promise<Report> {
  const reply = await (await connect()).admin('DELETE', pathOf(options));
  return { document: reply, text: 'Released: the held pushes go on.' };
}

async function list(): Promise<Report> {
  const reply = await (await connect()).admin('GET', '/freezes');
  const { results } = z.object({ results: z.array(freeze) }).parse(reply);
  const text = results.length > 0 ? table(headings, results.map(rowOf)) : 'Nothing is frozen.';
  return { document: reply, text };
}

const headings = ['app', 'since', 'by', 'reason'];

const rowOf = ({ appId, since, by, reason }: z.infer<typeof freeze>) => [
  appId ?? 'the whole service',
  since,
  by,
  reason || '-',
];
