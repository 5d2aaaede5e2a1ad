import { z } from 'zod';
import { confirm } from '../../confirm.ts';
import { dictionaryOrFile, wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseApp, connect, type ServiceClient } from '../../service.ts';

interface AppOption {
  app?: string;
}

interface ListOptions extends AppOption {
  where?: string;
  limit: string;
}

const user = z.looseObject({
  objectId: z.string(),
  username: z.string().nullish(),
  email: z.string().nullish(),
  mobilePhoneNumber: z.string().nullish(),
  createdAt: z.string(),
});

/** Adds `carillon user …`: reads and deletes users of an app with its master key. */
export function addUserCommands({ program, act, isJson }: Shell): void {
  const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;
  const users = program.command('user').description('users of an application');
  users
    .command('list')
    .description('users, the newest first')
    .option(...app)
    .option('--where <json or file>', 'only users that meet these conditions')
    .option('--limit <number>', 'how many, at most 1000', '100')
    .action(act(list));
  users
    .command('show <objectId>')
    .description('one user with every member')
    .option(...app)
    .action(act(show));
  users
    .command('delete <objectId>')
    .description('delete a user and its sessions')
    .option(...app)
    .option('--yes', 'do not ask')
    .action(
      act((objectId: string, options: AppOption & { yes?: boolean }) =>
        remove(objectId, { ...options, yes: options.yes || isJson() }),
      ),
    );
}

/** Calls the users of an app; `path` follows `/1.1/users`. */
async function call(app: string | undefined, method: string, path: string): Promise<unknown> {
  const service: ServiceClient = await connect();
  return service.asMaster(await chooseApp(service, app), method, `/1.1/users${path}`);
}

async function list({ app, where, limit }: ListOptions): Promise<Report> {
  const query = new URLSearchParams({
    order: '-createdAt',
    limit: String(wholeNumber('--limit', limit, 1)),
    ...(where === undefined ? {} : { where: JSON.stringify(await dictionaryOrFile(where)) }),
  });
  const reply = await call(app, 'GET', `?${query}`);
  const rows = z
    .object({ results: z.array(user) })
    .parse(reply)
    .results.map((one) => [
      one.objectId,
      one.username ?? '',
      one.email ?? '',
      one.mobilePhoneNumber ?? '',
      one.createdAt,
    ]);
  const headings = ['user', 'name', 'address', 'number', 'created'];
  return { document: reply, text: rows.length > 0 ? table(headings, rows) : 'There are no such users.' };
}

async function show(objectId: string, { app }: AppOption): Promise<Report> {
  const reply = await call(app, 'GET', `/${encodeURIComponent(objectId)}`);
  const rows = Object.entries(user.parse(reply)).map(([name, value]) => [name, textOf(value)]);
  return { document: reply, text: table(['member', 'value'], rows) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

async function remove(objectId: string, { app, yes }: AppOption & { yes?: boolean }): Promise<Report> {
  if (!yes) await confirm(`Delete user ${objectId} for good?`);
  const reply = await call(app, 'DELETE', `/${encodeURIComponent(objectId)}`);
  return { document: reply, text: `User ${objectId} is deleted.` };
}
