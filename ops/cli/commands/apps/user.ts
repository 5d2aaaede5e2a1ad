import type { Command } from 'commander';
import { z } from 'zod';
import { confirm } from '../../confirm.ts';
import { dictionaryOrFile, wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';

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

const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;

const verbs = {
  logout: ['end the session of a user on all devices', 'is logged out'],
  unlock: ['end the lock of a user after failed logins', 'is unlocked'],
  'send-reset': ['mail a link that resets the password', 'gets a mail'],
} as const;

/** Adds `carillon user …`: reads, changes and deletes users of an app. */
export function addUserCommands({ program, act, isJson }: Shell): void {
  const users = program.command('user').description('users of an application');
  users
    .command('list')
    .description('users, the newest first')
    .option(...app)
    .option('--where <json or file>', 'only users that meet these conditions')
    .option('--limit <number>', 'how many', '100')
    .action(act(list));
  users
    .command('show <objectId>')
    .description('one user with every member')
    .option(...app)
    .action(act(show));
  users
    .command('find <text>')
    .description('find users by objectId, name, address or number')
    .option(...app)
    .action(act(find));
  users
    .command('update <objectId> <members>')
    .description('write members of a user: JSON or a file')
    .option(...app)
    .action(act(update));
  addActs(users, act);
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

/** Adds what operators do to one user. */
function addActs(users: Command, act: Shell['act']): void {
  users
    .command('verify <objectId>')
    .description('mark the address of a user as verified')
    .option('--phone', 'the number in place of the address')
    .option(...app)
    .action(act(verify));
  for (const [verb, [description, done]] of Object.entries(verbs))
    users
      .command(`${verb} <objectId>`)
      .description(description)
      .option(...app)
      .action(
        act(async (objectId: string, { app: asked }: AppOption) => {
          const document = await ofUser(asked, 'POST', `/${part(objectId)}/${verb}`);
          return { document, text: `User ${objectId} ${done}.` };
        }),
      );
}

/** Calls the users of an app by the admin API; `path` follows `/users`. */
async function ofUser(
  asked: string | undefined,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const service = await connect();
  return service.admin(method, `/apps/${part(await chooseAppId(service, asked))}/users${path}`, body);
}

async function find(q: string, { app: asked }: AppOption): Promise<Report> {
  return listed(await ofUser(asked, 'GET', `?${new URLSearchParams({ q })}`));
}

async function update(objectId: string, members: string, { app: asked }: AppOption): Promise<Report> {
  const body = await dictionaryOrFile(members);
  const document = await ofUser(asked, 'PUT', `/${part(objectId)}`, body);
  return { document, text: JSON.stringify(document, null, 2) };
}

async function verify(
  objectId: string,
  { app: asked, phone }: AppOption & { phone?: boolean },
): Promise<Report> {
  const contact = phone ? 'mobilePhoneNumber' : 'email';
  const document = await ofUser(asked, 'POST', `/${part(objectId)}/verify`, { contact });
  return { document, text: `The ${phone ? 'number' : 'address'} of user ${objectId} is verified.` };
}

/** Users of one page of the admin API. */
const pageSize = 200;
const page = z.looseObject({ results: z.array(user), next: z.string().nullable() });

/** Lists the newest users, page by page until there are as many as asked for. */
async function list({ app: asked, where, limit }: ListOptions): Promise<Report> {
  const most = wholeNumber('--limit', limit, 1);
  const condition: Record<string, string> =
    where === undefined ? {} : { where: JSON.stringify(await dictionaryOrFile(where)) };
  const results: z.infer<typeof user>[] = [];
  for (let cursor: string | null = ''; cursor !== null && results.length < most; ) {
    const query = new URLSearchParams({
      ...condition,
      limit: String(Math.min(pageSize, most - results.length)),
      ...(cursor === '' ? {} : { cursor }),
    });
    const found = page.parse(await ofUser(asked, 'GET', `?${query}`));
    results.push(...found.results);
    cursor = found.next;
  }
  return listed({ results });
}

function listed(reply: unknown): Report {
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

async function show(objectId: string, { app: asked }: AppOption): Promise<Report> {
  const reply = await ofUser(asked, 'GET', `/${part(objectId)}`);
  const { user: members, ...account } = z.looseObject({ user }).parse(reply);
  const rows = Object.entries({ ...members, ...account }).map(([name, value]) => [name, textOf(value)]);
  return { document: reply, text: table(['member', 'value'], rows) };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

async function remove(objectId: string, { app: asked, yes }: AppOption & { yes?: boolean }): Promise<Report> {
  if (!yes) await confirm(`Delete user ${objectId} for good?`);
  const reply = await ofUser(asked, 'DELETE', `/${part(objectId)}`);
  return { document: reply, text: `User ${objectId} is deleted.` };
}
