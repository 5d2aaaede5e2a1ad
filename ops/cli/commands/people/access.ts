import { once } from 'node:events';
import { operatorRoles } from '../../../../shared/domain/admin/operator.ts';
import {
  argument,
  choice,
  flag,
  list,
  page,
  required,
  text,
  time,
  timeAhead,
  type Values,
} from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { say } from '../../language.ts';
import type { Report } from '../../report.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { connect } from '../../service.ts';
import { printable } from '../../table.ts';

interface Holder {
  id: string;
  name: string;
  role: string;
  apps: string[] | null;
}

const holder: Columns<Holder> = {
  id: 'id',
  name: 'name',
  role: 'role',
  apps: ({ apps }) => apps?.join(' ') ?? say('all'),
};

/** `carillon token …`, `session …` and `login-link`: access to the admin API. */
export const accessCommands = [
  group('token', 'tokens of people and machines for the admin API'),
  row('token create', 'create a token; it is shown once', {
    example: 'token create Anna --role operator --expires +30d',
    operation: 'createConsoleToken',
    body: {
      name: argument('<name>'),
      role: required(choice('--role <role>', 'what it may do', operatorRoles)),
      apps: list('--app <appId...>', 'only for these applications'),
      // The service checks the time against its own clock.
      expiresAt: timeAhead('--expires <time>', 'end, such as 2027-01-31T12:00Z or +30d'),
    },
    show: ({ id, name, token }) =>
      `${token}\n\n${say('Token {id} of {name}: it is not shown again.', { id, name })}`,
  }),
  row('token list', 'list the tokens, newest first', {
    operation: 'listConsoleTokens',
    always: { query: { limit: 200 } },
    columns: { ...holder, mail: 'mail', expires: 'expiresAt', used: 'usedAt' },
    none: 'There are no tokens.',
  }),
  row('token delete', 'delete a token and end its sessions', {
    example: 'token delete 3',
    operation: 'deleteConsoleToken',
    path: { id: argument('<id>') },
    show: (_reply, { id }) => say('Token {id} is deleted.', { id }),
  }),
  group('session', 'sessions of the console'),
  row('session list', 'list the sessions, newest first', {
    operation: 'listConsoleSessions',
    always: { query: { limit: 200 } },
    columns: { ...holder, seen: 'seenAt', address: 'address', expires: 'expiresAt' },
    none: 'Nobody is logged in.',
  }),
  row('session delete', 'end a session', {
    example: 'session delete 12',
    operation: 'deleteConsoleSession',
    path: { id: argument('<id>') },
    show: (_reply, { id }) => say('Session {id} is ended.', { id }),
  }),
  row('login-link', 'print a link that logs in to the console once, within 15 minutes', {
    operation: 'createLoginLink',
    show: ({ url }) => url,
  }),
];

const filters = {
  app: text('--app <appId>', 'only changes of this application'),
  actor: text('--actor <name>', 'name of a token; admin for CARILLON_ADMIN_TOKEN'),
  action: text('--action <action>', 'such as profile.put, or profile'),
  target: text('--target <id>', 'what was changed'),
  from: time('--from <time>', 'changed at this time or later, such as 2027-01-31T00:00Z'),
  to: time('--to <time>', 'changed before this time'),
  ...page(),
};
type Filters = Values<typeof filters>;

/** `carillon audit`: changes made through the admin API. */
export const auditCommand = command(
  'audit',
  'list what was changed by the admin API, newest first',
  {
    example: 'audit --action profile --from 2027-01-31T00:00Z',
    takes: {
      ...filters,
      lines: flag('--lines', 'export all of it instead of one page: a JSON object per line'),
    },
    run: ({ lines, ...query }) => (lines ? writeLines(query) : showPage(query)),
  },
);

const columns: Columns<Item<'listAudit'>> = {
  at: 'at',
  who: ({ actor }) => actor.name,
  action: 'action',
  target: 'target',
  app: 'appId',
};

async function showPage(query: Filters): Promise<Report> {
  const reply = await (await connect()).call('listAudit', { query });
  return { document: reply, text: listed(reply.results, columns, { next: reply.next }) };
}

/** Number of entries per page of an export. This is the maximum of the list. */
const exportPage = 200;

/** Writes all entries to standard output. Waits if the reader is slower. */
async function writeLines(query: Filters): Promise<undefined> {
  const service = await connect();
  for (let { cursor } = query; ; ) {
    const { results, next } = await service.call('listAudit', {
      query: { ...query, limit: exportPage, cursor },
    });
    const lines = results.map((one) => `${printable(JSON.stringify(one))}\n`).join('');
    if (!process.stdout.write(lines)) await once(process.stdout, 'drain');
    if (next === null) return undefined;
    cursor = next;
  }
}
