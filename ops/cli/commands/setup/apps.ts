import { asUnchecked, type Reply } from '../../../client/client.ts';
import type { AppSummary } from '../../../client/operations.ts';
import {
  argument,
  choice,
  flag,
  oneOf,
  parsed,
  preset,
  rest,
  text,
  type Values,
  whole,
  withDefault,
} from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { confirm, parseAppId, parsePairs, readProvidedKeys } from '../../input.ts';
import { say } from '../../language.ts';
import { type Report, UsageError } from '../../report.ts';
import { type Columns, listed, row } from '../../row.ts';
import { connect } from '../../service.ts';
import { table } from '../../table.ts';

const createOptions = {
  name: argument('<name>'),
  pairs: rest('[option=value...]'),
  edition: choice('--edition <edition>', 'home or international', ['home', 'international']),
  appId: parsed(
    '--app-id <id>',
    'id of an app that moves here; without it one is generated',
    (_name, id) => parseAppId(id),
  ),
  keysFile: text(
    '--keys-file <file>',
    'JSON with its existing appKey, masterKey and hookKey, or - for standard input; missing ones are generated',
  ),
  plan: choice('--plan <plan>', 'commercial or development', ['commercial', 'development']),
};

const keyNames = ['appKey', 'masterKey', 'hookKey'] as const;

const setOptions = { appId: argument('<appId>'), pairs: rest('<option=value...>') };

/** `carillon app …`: applications and their options. */
export const appCommands = [
  group('app', 'applications and their options'),
  command('app create', 'create an application and print its keys', {
    example: 'app create Shop hybridPush=true --edition international',
    takes: createOptions,
    run: create,
  }),
  row('app list', 'all applications; with --sizes, their devices and pushes', {
    example: 'app list --sizes --q shop',
    operation: 'listApps',
    query: {
      view: preset('--sizes', 'with devices and pushes in 7 days, in pages', 'list'),
      q: text('--q <text>', 'with --sizes: an id, or a part of the name'),
      sort: choice('--sort <order>', 'with --sizes: order; activity is the newest push first', [
        'id',
        'name',
        'activity',
      ]),
      limit: whole('--limit <n>', 'with --sizes: largest number of results, at most 200', 1),
      cursor: text('--cursor <next>', 'with --sizes: `next` of the page before'),
    },
    show: describeList,
  }),
  row('app show', 'one application with its keys and options', {
    example: 'app show wHx47FrDSrY1GzAzkZtSHtOx',
    operation: 'getApp',
    path: { appId: argument('<appId>') },
    show: describe,
  }),
  command('app set', 'change options, or the name; a value is JSON, else a string', {
    example: 'app set wHx47FrDSrY1GzAzkZtSHtOx pushCallsPerMinute=1200',
    takes: setOptions,
    run: set,
  }),
  row(
    'app rotate-key',
    'replace appKey, masterKey or hookKey; the old one stays valid for a time',
    {
      example: 'app rotate-key wHx47FrDSrY1GzAzkZtSHtOx masterKey --grace 86400',
      operation: 'rotateKey',
      path: { appId: argument('<appId>'), key: oneOf('<key>', keyNames) },
      body: {
        graceSeconds: withDefault(
          whole('--grace <seconds>', 'how long the old key stays valid'),
          3600,
        ),
      },
      show: ({ value, oldValidUntil }, { key }) =>
        `${key}: ${value}\n${oldValidUntil === null ? say('The old one is refused.') : say('The old one is valid until {time}.', { time: oldValidUntil })}`,
    },
  ),
  command('app delete', 'delete an application with all its data', {
    example: 'app delete wHx47FrDSrY1GzAzkZtSHtOx --yes',
    takes: { appId: argument('<appId>'), yes: flag('--yes', 'do not ask') },
    run: ({ appId, yes }, { isJson }) => remove(appId, yes === true || isJson),
  }),
];

async function create(values: Values<typeof createOptions>): Promise<Report> {
  const { pairs, keysFile, ...members } = values;
  const options = Object.fromEntries(parsePairs(pairs));
  const keys = await readProvidedKeys(keysFile);
  const body = asUnchecked({ ...members, ...keys, ...(pairs.length > 0 ? { options } : {}) });
  const document = await (await connect()).call('createApp', { body });
  return { document, text: describe(document) };
}

/** App in a list. Its sizes are present only in a paged list. */
interface Listed extends Partial<Omit<AppSummary, 'appId' | 'name'>> {
  appId: string;
  name: string;
}

const columns: Columns<Listed> = {
  'app id': 'appId',
  name: 'name',
  edition: 'edition',
  plan: 'plan',
};
const sizes: Columns<Listed> = {
  'app id': 'appId',
  name: 'name',
  plan: 'plan',
  devices: 'devices',
  'pushes in 7 days': 'pushes7d',
  created: 'createdAt',
};

function describeList(reply: Reply<'listApps'>): string {
  return 'next' in reply
    ? listed<Listed>(reply.results, sizes, { next: reply.next })
    : listed<Listed>(reply.results, columns, { none: 'There are no apps.' });
}

async function set({ appId, pairs }: Values<typeof setOptions>): Promise<Report> {
  const { name, ...options } = Object.fromEntries(parsePairs(pairs));
  if (name === '') throw new UsageError(say('name expects a text'));
  const body = asUnchecked({
    ...(name === undefined ? {} : { name: typeof name === 'string' ? name : JSON.stringify(name) }),
    ...(Object.keys(options).length > 0 ? { options } : {}),
  });
  const document = await (await connect()).call('updateApp', { path: { appId }, body });
  return { document, text: describe(document) };
}

/** Deletes an app. With `--json`, it does not ask for confirmation. */
async function remove(appId: string, isConfirmed: boolean): Promise<Report> {
  if (!isConfirmed)
    await confirm(
      say('Delete app {appId} with its users, installations and pushes for good?', { appId }),
    );
  const document = await (await connect()).call('deleteApp', { path: { appId }, body: { appId } });
  return { document, text: say('App {appId} is deleted.', { appId }) };
}

/** Describes an app: first its keys, which only owners receive, then all options. */
function describe(app: Reply<'getApp'>): string {
  const rows = [
    [say('app id'), app.appId],
    [say('app key'), app.appKey],
    [say('master key'), app.masterKey],
    [say('hook key'), app.hookKey],
    [say('edition'), app.edition],
    [say('plan'), app.plan],
    ...Object.entries(app.options).map(([key, value]) => [key, JSON.stringify(value)]),
  ];
  return table(
    [say('name'), app.name],
    rows.map(([member = '', value = '-']) => [member, value]),
  );
}
