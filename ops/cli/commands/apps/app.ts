import { Option } from 'commander';
import { z } from 'zod';
import { confirm } from '../../confirm.ts';
import { parsePairs, wholeNumber } from '../../input.ts';
import { parseAppId, readProvidedKeys } from '../../keys-file.ts';
import { type Report, type Shell, table, UsageError } from '../../report.ts';
import { type AppReply, appReply, connect, part } from '../../service.ts';

const pathOf = (appId: string) => `/apps/${part(appId)}`;

/** Adds `carillon app …`: applications and their options. */
export function addAppCommands({ program, act, isJson }: Shell): void {
  const app = program.command('app').description('applications and their options');
  app
    .command('create <name> [option=value...]')
    .description('create an application and print its keys')
    .addOption(new Option('--edition <edition>', 'home or international').choices(['home', 'international']))
    .option('--app-id <id>', 'id of an app that moves here; without it one is generated')
    .option(
      '--keys-file <file>',
      'JSON with its existing appKey, masterKey and hookKey, or - for standard input; missing ones are generated',
    )
    .addOption(
      new Option('--plan <plan>', 'commercial or development').choices(['commercial', 'development']),
    )
    .action(act(create));
  app.command('list').description('all applications').action(act(list));
  app
    .command('show <appId>')
    .description('one application with its keys and options')
    .action(act(async (appId: string) => describe(await (await connect()).app(appId))));
  app
    .command('set <appId> <option=value...>')
    .description('change options, or the name; a value is JSON, else a string')
    .action(act(set));
  app
    .command('rotate-key <appId> <key>')
    .description('replace appKey, masterKey or hookKey; the old one stays valid for a time')
    .option('--grace <seconds>', 'how long the old key stays valid', '3600')
    .action(act(rotate));
  app
    .command('delete <appId>')
    .description('delete an application with all its data')
    .option('--yes', 'do not ask')
    .action(act((appId: string, { yes }: { yes?: boolean }) => remove(appId, yes || isJson())));
}

async function rotate(appId: string, key: string, { grace }: { grace: string }): Promise<Report> {
  const graceSeconds = wholeNumber('--grace', grace);
  const path = `${pathOf(appId)}/keys/${part(key)}/rotate`;
  const document = await (await connect()).admin('POST', path, { graceSeconds });
  const { value, oldValidUntil } = rotatedReply.parse(document);
  const old =
    oldValidUntil === null ? 'The old one is refused.' : `The old one is valid until ${oldValidUntil}.`;
  return { document, text: `${key}: ${value}\n${old}` };
}

const rotatedReply = z.looseObject({ value: z.string(), oldValidUntil: z.string().nullable() });

interface CreateOptions {
  edition?: string;
  plan?: string;
  appId?: string;
  keysFile?: string;
}

async function create(
  name: string,
  pairs: string[],
  { edition, plan, appId: requestedId, keysFile }: CreateOptions,
): Promise<Report> {
  const options = Object.fromEntries(parsePairs(pairs));
  const appId = requestedId === undefined ? undefined : parseAppId(requestedId);
  const keys = await readProvidedKeys(keysFile);
  const service = await connect();
  const body = { name, edition, plan, appId, ...keys, ...(pairs.length > 0 ? { options } : {}) };
  return describe(appReply.parse(await service.admin('POST', '/apps', body)));
}

async function list(): Promise<Report> {
  const results = await (await connect()).apps();
  const rows = results.map((one) => [one.appId, one.name, one.edition, one.plan]);
  const text = rows.length > 0 ? table(['app id', 'name', 'edition', 'plan'], rows) : 'There are no apps.';
  return { document: { results }, text };
}

async function set(appId: string, pairs: string[]): Promise<Report> {
  const values = parsePairs(pairs);
  const name = values.get('name');
  values.delete('name');
  if (name === '') throw new UsageError('name expects a text');
  const body = {
    ...(name === undefined ? {} : { name: typeof name === 'string' ? name : JSON.stringify(name) }),
    ...(values.size > 0 ? { options: Object.fromEntries(values) } : {}),
  };
  const service = await connect();
  return describe(appReply.parse(await service.admin('PATCH', pathOf(appId), body)));
}

/** Deletes an app. With `--json` there is no question. */
async function remove(appId: string, isConfirmed: boolean): Promise<Report> {
  if (!isConfirmed) await confirm(`Delete app ${appId} with its users, installations and pushes for good?`);
  const document = await (await connect()).admin('DELETE', pathOf(appId), { appId });
  return { document, text: `App ${appId} is deleted.` };
}

/** Describes an app: keys first, then every option. */
function describe(app: AppReply): Report {
  const rows = [
    ['app id', app.appId],
    ['app key', app.appKey],
    ['master key', app.masterKey],
    ['hook key', app.hookKey],
    ['edition', app.edition],
    ['plan', app.plan],
    ...Object.entries(app.options).map(([key, value]) => [key, JSON.stringify(value)]),
  ];
  return { document: app, text: table(['name', app.name], rows) };
}
