import { operatorRoles } from '../../../../shared/domain/admin/operator.ts';
import { argument, choice, list, required, timeAhead } from '../../arguments.ts';
import { group } from '../../command.ts';
import { say } from '../../language.ts';
import { type Columns, row } from '../../row.ts';

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

/** `carillon token …`, `session …` and `login-link`: who may use the admin API. */
export const accessCommands = [
  group('token', 'tokens of people and machines for the admin API'),
  row('token create', 'create a token; it is shown once', {
    example: 'token create Anna --role operator --expires +30d',
    operation: 'createConsoleToken',
    body: {
      name: argument('<name>'),
      role: required(choice('--role <role>', 'what it may do', operatorRoles)),
      apps: list('--app <appId...>', 'only for these applications'),
      // The clock of the service decides.
      expiresAt: timeAhead('--expires <time>', 'end, such as 2027-01-31T12:00Z or +30d'),
    },
    show: ({ id, name, token }) =>
      `${token}\n\n${say('Token {id} of {name}: it is not shown again.', { id, name })}`,
  }),
  row('token list', 'list the tokens, newest first', {
    operation: 'listConsoleTokens',
    always: { query: { limit: 200 } },
    columns: { ...holder, expires: 'expiresAt', used: 'usedAt' },
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
