import type { Reply } from '../../../client/client.ts';
import {
  app,
  argument,
  device,
  flag,
  json,
  members,
  preset,
  required,
  text,
  type Values,
  whole,
  withDefault,
} from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { confirm } from '../../input.ts';
import { say, words } from '../../language.ts';
import { CommandFailure, type Report } from '../../report.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { chooseAppId, connect, type ServiceClient } from '../../service.ts';
import { table } from '../../table.ts';

type User = Item<'listAppUsers'>;

const columns: Columns<User> = {
  user: (user) => String(user.objectId),
  name: ({ username }) => textOf(username),
  address: ({ email }) => textOf(email),
  number: ({ mobilePhoneNumber }) => textOf(mobilePhoneNumber),
  created: ({ createdAt }) => textOf(createdAt),
};

const user = () => argument('<objectId>', 'the user');

const listOptions = {
  app: app(),
  q: text('--q <text>', 'only the users with this objectId, name, address or number'),
  where: json('--where <json or file>', 'only users that meet these conditions'),
  limit: withDefault(whole('--limit <number>', 'how many', 1), 100),
};
type ListOptions = Values<typeof listOptions>;

const eraseOptions = {
  id: user(),
  app: app(),
  dryRun: flag('--dry-run', 'delete nothing: count what is stored'),
  yes: flag('--yes', 'do not ask'),
};

/** `carillon user …`: read, change and delete users of an app. */
export const userCommands = [
  group('user', 'users of an application'),
  command('user list', 'users, the newest first', {
    example: 'user list --q ada@example.com',
    takes: listOptions,
    run: listUsers,
  }),
  row('user show', 'one user with every member', {
    example: 'user show 6735d1a2c3f04b0012ab34cd',
    operation: 'getAppUser',
    path: { id: user() },
    show: describe,
  }),
  row('user update', 'write members of a user: JSON or a file', {
    example: `user update 6735d1a2c3f04b0012ab34cd '{"nickname":"Ada"}'`,
    operation: 'updateAppUser',
    path: { id: user() },
    document: members('<members>', 'JSON or a file'),
  }),
  row('user verify', 'mark the address of a user as verified', {
    example: 'user verify 6735d1a2c3f04b0012ab34cd --phone',
    operation: 'verifyUser',
    path: { id: user() },
    body: { contact: preset('--phone', 'the number in place of the address', 'mobilePhoneNumber') },
    show: (_reply, { id, contact }) =>
      contact
        ? say('The number of user {id} is verified.', { id })
        : say('The address of user {id} is verified.', { id }),
  }),
  row('user logout', 'end the session of a user on all devices', {
    example: 'user logout 6735d1a2c3f04b0012ab34cd',
    operation: 'logoutUser',
    path: { id: user() },
    show: (_reply, { id }) => say('User {id} is logged out.', { id }),
  }),
  row('user unlock', 'end the lock of a user after failed logins', {
    example: 'user unlock 6735d1a2c3f04b0012ab34cd',
    operation: 'unlockUser',
    path: { id: user() },
    show: (_reply, { id }) => say('User {id} is unlocked.', { id }),
  }),
  row('user send-reset', 'mail a link that resets the password', {
    example: 'user send-reset 6735d1a2c3f04b0012ab34cd',
    operation: 'sendUserReset',
    path: { id: user() },
    show: (_reply, { id }) => say('User {id} gets a mail.', { id }),
  }),
  row('user delete', 'delete a user and its sessions', {
    example: 'user delete 6735d1a2c3f04b0012ab34cd --yes',
    operation: 'deleteAppUser',
    path: { id: user() },
    confirm: ({ id }) => say('Delete user {id} for good?', { id }),
    show: (_reply, { id }) => say('User {id} is deleted.', { id }),
  }),
  row('user export', 'everything that is stored of one person, as JSON', {
    example: 'user export 6735d1a2c3f04b0012ab34cd',
    operation: 'exportAppUser',
    path: { id: user() },
  }),
  command('user erase', 'delete everything that is stored of one person', {
    example: 'user erase 6735d1a2c3f04b0012ab34cd --dry-run',
    takes: eraseOptions,
    run: erasePerson,
  }),
];

async function erasePerson(
  { id, app: requestedAppId, dryRun, yes }: Values<typeof eraseOptions>,
  { isJson }: { isJson: boolean },
): Promise<Report> {
  const service = await connect();
  const path = { id, appId: await chooseAppId(service, requestedAppId) };
  if (!dryRun && !yes && !isJson)
    await confirm(say('Delete everything that is stored of user {id} for good?', { id }));
  const query = { everything: 'true', dryRun: dryRun ? 'true' : 'false' } as const;
  const document = await service.call('deleteAppUser', { path, query });
  if (!('erased' in document)) return { document, text: say('User {id} is deleted.', { id }) };
  const erased = Object.entries(document.erased).map(([part, n]) => [part, n]);
  const kept = document.kept.map(({ count, reason, what }) => [what, count ?? '', reason]);
  const text = [
    table(words('part', 'rows'), erased),
    table(words('kept', 'rows', 'reason'), kept),
    dryRun
      ? say('This is what is stored of user {id}. Nothing was deleted.', { id })
      : say('Everything that was stored of user {id} is deleted.', { id }),
  ];
  return { document, text: text.join('\n\n') };
}

const textOf = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : value === undefined || value === null
      ? ''
      : JSON.stringify(value);

function describe({ user, ...account }: Reply<'getAppUser'>): string {
  const rows = Object.entries({ ...user, ...account }).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  return table(words('member', 'value'), rows);
}

/** Number of users per page of the admin API. */
const pageSize = 200;

/** Lists the newest users. Reads pages until the requested number is reached. */
async function listUsers({ app: requestedAppId, q, where, limit }: ListOptions): Promise<Report> {
  const condition = where === undefined ? undefined : JSON.stringify(where);
  const service = await connect();
  const path = { appId: await chooseAppId(service, requestedAppId) };
  const results: User[] = [];
  for (let cursor: string | undefined, isLast = false; !isLast && results.length < limit; ) {
    const query = {
      q,
      where: condition,
      cursor,
      limit: Math.min(pageSize, limit - results.length),
    };
    const page = await service.call('listAppUsers', { path, query });
    results.push(...page.results);
    cursor = page.next ?? undefined;
    isLast = page.next === null;
  }
  return {
    document: { results },
    text: listed(results, columns, { none: 'There are no such users.' }),
  };
}

const deletionOptions = {
  where: required(json('--where <json or file>', 'condition; {} means all devices')),
  expected: whole(
    '--expected <n>',
    'number of them; another number is refused. Without it they are counted first',
  ),
  app: app(),
  yes: flag('--yes', 'do not ask'),
};

/** `carillon device …`: change and delete devices of an application. */
export const deviceCommands = [
  group('device', 'change and delete devices; `devices` lists them'),
  row(
    'device update',
    'write members of a device (JSON or a file), such as {"channels":["news"]}',
    {
      example: `device update 6735d1a2c3f04b0012ab34cd '{"channels":["news"]}'`,
      operation: 'updateAppInstallation',
      path: { id: device('<id>') },
      document: members('<members>', 'JSON or a file'),
    },
  ),
  row('device delete', 'delete a device', {
    example: 'device delete 6735d1a2c3f04b0012ab34cd --yes',
    operation: 'deleteAppInstallation',
    path: { id: device('<id>') },
    confirm: ({ id }) => say('Delete device {id} for good?', { id }),
    show: (_reply, { id }) => say('Device {id} is deleted.', { id }),
  }),
  command(
    'device delete-all',
    'delete all devices that meet a condition, at most 100,000 at once',
    {
      example: `device delete-all --where '{"deviceType":"web"}'`,
      takes: deletionOptions,
      run: removeAll,
    },
  ),
];

async function removeAll(
  { app: requestedAppId, where, expected, yes }: Values<typeof deletionOptions>,
  { isJson }: { isJson: boolean },
): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, requestedAppId);
  const matching = expected ?? (await count(service, appId, where));
  if (!yes && !isJson) await confirm(say('Delete {n} devices for good?', { n: matching }));
  const body = { where, expected: matching };
  const document = await service.call('deleteMatchingInstallations', { path: { appId }, body });
  return { document, text: say('{n} devices are deleted.', { n: document.deleted }) };
}

/**
 * Counts the devices that match a condition. Throws `CommandFailure` if the number exceeds the
 * counting limit of the service.
 */
async function count(service: ServiceClient, appId: string, where: object): Promise<number> {
  const query = { where: JSON.stringify(where), count: '1', limit: 1 } as const;
  const reply = await service.call('listAppInstallations', { path: { appId }, query });
  const { count: found = 0, countIsLeast } = reply;
  if (countIsLeast)
    throw new CommandFailure(
      say('More than {n} devices match: say how many with --expected.', { n: found }),
    );
  return found;
}
