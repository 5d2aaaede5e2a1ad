import { z } from 'zod';
import { systemClock } from '../../../../shared/clock.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import { dictionaryOrFile, wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';
import { futureTime } from '../../time.ts';

/** Option that names the app. */
export interface AppOption {
  app?: string;
}

/** `--app`, for `option`. */
export const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;

/** Calls the admin API for an app; `path` follows its path. */
export async function callApp(
  { app: asked }: AppOption,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const service = await connect();
  const appId = await chooseAppId(service, asked);
  return service.admin(method, `/apps/${part(appId)}/${path}`, body);
}

/** Adds commands that prepare pushes: audience, templates, audiences, test devices, scheduled pushes, suggestions. */
export function addSendingCommands(shell: Shell): void {
  const { program, act } = shell;
  program
    .command('audience')
    .description('count the devices that a push would go to, by connector')
    .option(...app)
    .option('--where <json or file>', 'conditions on installations; without it all count')
    .option('--channels <names...>', 'only subscribers of these channels')
    .option('--clauses', 'also count without each part of the condition')
    .option('--sample <n>', 'devices to show, at most 20')
    .action(act(countAudience));
  addSavedCommands(shell, { command: 'template', path: 'push-templates', member: 'body' });
  addSavedCommands(shell, { command: 'saved-audience', path: 'audiences', member: 'where' });
  addSavedCommands(shell, { command: 'test-device', path: 'test-devices', member: 'installation' });
  for (const name of ['fields', 'channels'] as const)
    program
      .command(`${name} [prefix]`)
      .description(`list ${name === 'fields' ? 'members' : 'channels'} of the newest devices`)
      .option(...app)
      .action(act((prefix: string | undefined, options: AppOption) => suggest(name, prefix, options)));
  const scheduled = program.command('scheduled').description('scheduled pushes, with their senders');
  scheduled
    .command('list')
    .description('list the scheduled pushes, the next one first')
    .option(...app)
    .action(act(listScheduled));
  scheduled
    .command('move <id>')
    .description('send the push with this number at another time')
    .requiredOption('--at <time>', 'time of sending (ISO 8601, or +10m)')
    .option(...app)
    .action(act(moveScheduled));
  scheduled
    .command('cancel <id>')
    .description('cancel the push with this number')
    .option(...app)
    .action(act(cancelScheduled));
}

interface SavedKind {
  command: string;
  path: string;
  member: 'body' | 'where' | 'installation';
}

/** Adds `list`, `show`, `put` and `delete` of a kind of saved items. */
function addSavedCommands({ program, act }: Shell, { command, path, member }: SavedKind): void {
  const group = program.command(command).description(`${path} of an application`);
  const at = (name: string) => `${path}/${part(name)}`;
  group
    .command('list')
    .description('list them by name')
    .option(...app)
    .action(act((options: AppOption) => listSaved(path, options)));
  group
    .command('show <name>')
    .description('show one')
    .option(...app)
    .action(act(async (name: string, options: AppOption) => shown(await callApp(options, 'GET', at(name)))));
  group
    .command('put <name> <content>')
    .description(
      member === 'installation' ? 'save the id of a device' : 'save a JSON object, or the file of one',
    )
    .option(...app)
    .action(
      act(async (name: string, content: string, options: AppOption) => {
        const value = member === 'installation' ? content : await dictionaryOrFile(content);
        const reply = await callApp(options, 'PUT', at(name), { [member]: value });
        return { document: asDocument(reply), text: `${name} is saved.` };
      }),
    );
  group
    .command('delete <name>')
    .description('delete one')
    .option(...app)
    .action(
      act(async (name: string, options: AppOption) => {
        const reply = await callApp(options, 'DELETE', at(name));
        return { document: asDocument(reply), text: `${name} is deleted.` };
      }),
    );
}

const asDocument = (reply: unknown): object => z.looseObject({}).parse(reply);

const shown = (reply: unknown): Report => ({
  document: asDocument(reply),
  text: JSON.stringify(reply, null, 2),
});

const savedList = z.object({
  results: z.array(z.looseObject({ name: z.string(), updatedAt: z.string(), updatedBy: z.string() })),
});

async function listSaved(path: string, options: AppOption): Promise<Report> {
  const reply = await callApp(options, 'GET', path);
  const rows = savedList.parse(reply).results.map((one) => [one.name, one.updatedBy, one.updatedAt]);
  const text = rows.length > 0 ? table(['name', 'by', 'at'], rows) : 'Nothing is saved.';
  return { document: asDocument(reply), text };
}

const counted = z.looseObject({
  devices: z.number(),
  isLeast: z.boolean(),
  connectors: z.record(z.string(), z.number()),
  problems: z.record(z.string(), z.number()),
  sample: z.array(z.unknown()),
  clauses: z.array(z.looseObject({ text: z.string(), without: z.number().nullable() })).default([]),
  warning: z.string().optional(),
});

interface AudienceOptions extends AppOption {
  where?: string;
  channels?: string[];
  clauses?: boolean;
  sample?: string;
}

async function countAudience(options: AudienceOptions): Promise<Report> {
  const { where, channels, clauses, sample } = options;
  const reply = await callApp(options, 'POST', 'audience', {
    ...(where === undefined ? {} : { where: await dictionaryOrFile(where) }),
    ...(channels === undefined ? {} : { channels: channels.flatMap((names) => names.split(',')) }),
    ...(clauses ? { clauses } : {}),
    ...(sample === undefined ? {} : { sample: wholeNumber('--sample', sample) }),
  });
  const found = counted.parse(reply);
  const rows = Object.entries(found.connectors).map(([id, n]) => [displayName(id), n]);
  const text = [
    `${found.isLeast ? 'At least ' : ''}${found.devices} devices.`,
    ...(rows.length > 0 ? ['', table(['connector', 'devices'], rows)] : []),
    ...Object.entries(found.problems).map(([problem, n]) => `${problem}: ${n}`),
    ...found.clauses.map((clause) => `without ${clause.text}: ${clause.without ?? 'not counted in time'}`),
    ...found.sample.map((device) => JSON.stringify(device)),
    ...(found.warning === undefined ? [] : [`Warning: ${found.warning}`]),
  ].join('\n');
  return { document: asDocument(reply), text };
}

async function suggest(
  name: 'fields' | 'channels',
  prefix: string | undefined,
  options: AppOption,
): Promise<Report> {
  const query = prefix === undefined ? '' : `?prefix=${encodeURIComponent(prefix)}`;
  const reply = await callApp(options, 'GET', `${name}${query}`);
  const { results } = z.object({ results: z.array(z.unknown()) }).parse(reply);
  return { document: asDocument(reply), text: results.map((one) => JSON.stringify(one)).join('\n') };
}

const scheduledPage = z.object({
  results: z.array(
    z.looseObject({
      id: z.number(),
      objectId: z.string(),
      'push-time': z.string(),
      createdBy: z.string().nullable(),
    }),
  ),
});

async function listScheduled(options: AppOption): Promise<Report> {
  const reply = await callApp(options, 'GET', 'scheduled?limit=200');
  const rows = scheduledPage
    .parse(reply)
    .results.map((one) => [one.id, one['push-time'], one.objectId, one.createdBy ?? '-']);
  const text = rows.length > 0 ? table(['id', 'sent at', 'push', 'by'], rows) : 'No push waits for its time.';
  return { document: asDocument(reply), text };
}

async function moveScheduled(id: string, { at, ...options }: AppOption & { at: string }): Promise<Report> {
  const pushTime = futureTime('--at', at, systemClock.now());
  const reply = await callApp(options, 'PATCH', `scheduled/${part(id)}`, {
    push_time: pushTime,
  });
  return { document: asDocument(reply), text: `Scheduled push ${id} is sent at ${pushTime}.` };
}

async function cancelScheduled(id: string, options: AppOption): Promise<Report> {
  const reply = await callApp(options, 'DELETE', `scheduled/${part(id)}`);
  return { document: asDocument(reply), text: `Scheduled push ${id} is cancelled.` };
}
