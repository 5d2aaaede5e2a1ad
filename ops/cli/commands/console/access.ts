import { Option } from 'commander';
import { z } from 'zod';
import { systemClock } from '../../../../shared/clock.ts';
import { operatorRoles } from '../../../../shared/domain/admin/operator.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { connect, part } from '../../service.ts';
import { futureTime } from '../../time.ts';

const holder = z.looseObject({
  id: z.string(),
  name: z.string(),
  role: z.string(),
  apps: z.array(z.string()).nullable(),
});
const token = holder.extend({ expiresAt: z.string().nullable(), usedAt: z.string().nullable() });
const session = holder.extend({ address: z.string(), seenAt: z.string(), expiresAt: z.string() });

interface NewToken {
  role: string;
  app?: string[];
  expires?: string;
}

/** Adds `carillon token …`, `carillon session …` and `carillon login-link`: who may use the admin API. */
export function addAccessCommands({ program, act }: Shell): void {
  const tokens = program.command('token').description('tokens of people and machines for the admin API');
  tokens
    .command('create <name>')
    .description('create a token; it is shown once')
    .addOption(
      new Option('--role <role>', 'what it may do').choices([...operatorRoles]).makeOptionMandatory(),
    )
    .option('--app <appId...>', 'only for these applications')
    .option('--expires <time>', 'end, such as 2027-01-31T12:00Z or +30d')
    .action(act(createToken));
  tokens.command('list').description('list the tokens, newest first').action(act(listTokens));
  tokens
    .command('delete <id>')
    .description('delete a token and end its sessions')
    .action(act((id: string) => remove(`/tokens/${part(id)}`, `Token ${id} is deleted.`)));
  const sessions = program.command('session').description('sessions of the console');
  sessions.command('list').description('list the sessions, newest first').action(act(listSessions));
  sessions
    .command('delete <id>')
    .description('end a session')
    .action(act((id: string) => remove(`/sessions/${part(id)}`, `Session ${id} is ended.`)));
  program
    .command('login-link')
    .description('print a link that logs in to the console once, within 15 minutes')
    .action(act(createLink));
}

async function createToken(name: string, { role, app, expires }: NewToken): Promise<Report> {
  // The only other clock is the service's, which decides.
  const expiresAt = expires === undefined ? undefined : futureTime('--expires', expires, systemClock.now());
  const body = { name, role, ...(app ? { apps: app } : {}), ...(expiresAt ? { expiresAt } : {}) };
  const reply = await (await connect()).admin('POST', '/tokens', body);
  const created = token.extend({ token: z.string() }).parse(reply);
  return {
    document: reply,
    text: `${created.token}\n\nToken ${created.id} of ${name}: it is not shown again.`,
  };
}

async function listTokens(): Promise<Report> {
  const reply = await (await connect()).admin('GET', '/tokens?limit=200');
  const { results } = z.object({ results: z.array(token) }).parse(reply);
  const rows = results.map((one) => [...holderOf(one), one.expiresAt ?? '-', one.usedAt ?? '-']);
  const headings = ['id', 'name', 'role', 'apps', 'expires', 'used'];
  return { document: reply, text: rows.length > 0 ? table(headings, rows) : 'There are no tokens.' };
}

async function listSessions(): Promise<Report> {
  const reply = await (await connect()).admin('GET', '/sessions?limit=200');
  const { results } = z.object({ results: z.array(session) }).parse(reply);
  const rows = results.map((one) => [...holderOf(one), one.address, one.seenAt, one.expiresAt]);
  const headings = ['id', 'name', 'role', 'apps', 'address', 'seen', 'expires'];
  return { document: reply, text: rows.length > 0 ? table(headings, rows) : 'Nobody is logged in.' };
}

const holderOf = ({ id, name, role, apps }: z.infer<typeof holder>) => [
  id,
  name,
  role,
  apps?.join(' ') ?? 'all',
];

async function remove(path: string, text: string): Promise<Report> {
  return { document: await (await connect()).admin('DELETE', path), text };
}

async function createLink(): Promise<Report> {
  const reply = await (await connect()).admin('POST', '/login-links');
  return { document: reply, text: z.looseObject({ url: z.string() }).parse(reply).url };
}
