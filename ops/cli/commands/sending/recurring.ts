import type { Command } from 'commander';
import { z } from 'zod';
import { systemClock } from '../../../../shared/clock.ts';
import { wholeNumber } from '../../input.ts';
import { type Report, type Shell, table, UsageError } from '../../report.ts';
import { part } from '../../service.ts';
import { futureTime } from '../../time.ts';
import { bodyOf, type PushContent } from '../pushes/push.ts';
import { type AppOption, app, callApp } from './sending.ts';

interface TimeOptions extends AppOption {
  cron?: string;
  zone?: string;
  starts?: string;
  ends?: string;
}

type DefinitionOptions = TimeOptions & PushContent & { name?: string };

/** Adds `carillon recurring`: definitions of recurring pushes, and their next times. */
export function addRecurringCommands({ program, act }: Shell): void {
  const group = program
    .command('recurring')
    .description('pushes that are made at the times of a cron expression');
  const one = (name: string, description: string) =>
    group
      .command(`${name} <id>`)
      .description(description)
      .option(...app);
  group
    .command('list')
    .description('list the recurring pushes, the newest first')
    .option(...app)
    .action(act(list));
  one('show', 'show one').action(act((id: string, options: AppOption) => show(id, options)));
  withContent(withTimes(group.command('create <name>').description('create one')))
    .option('--disabled', 'makes no push until it is enabled')
    .action(act(create));
  withContent(withTimes(one('change', 'change one; content that is given replaces the whole body')))
    .option('--name <name>', 'another name')
    .action(act(change));
  for (const isEnabled of [true, false])
    one(isEnabled ? 'enable' : 'disable', isEnabled ? 'make pushes again' : 'make no more pushes').action(
      act((id: string, options: AppOption) => patch(id, options, { isEnabled })),
    );
  one('start', 'make a push now; the times stay').action(act(start));
  one('delete', 'delete one; its pushes stay').action(act(remove));
  withTimes(group.command('preview').description('show the next times of an expression, and store nothing'))
    .option('--count <n>', 'times to show, at most 50')
    .option(...app)
    .action(act(preview));
}

const withTimes = (command: Command): Command =>
  command
    .option('--cron <expression>', 'minute, hour, day of the month, month, day of the week: "0 9 * * 1-5"')
    .option('--zone <time zone>', 'IANA time zone of the expression, such as Asia/Shanghai')
    .option('--starts <time>', 'no push before (ISO 8601, or +10m), or none')
    .option('--ends <time>', 'no push from then on (ISO 8601, or +10m), or none');

const withContent = (command: Command): Command =>
  (command.options.some(({ long }) => long === '--app') ? command : command.option(...app))
    .option('--alert <text>', 'text of the notification')
    .option('--title <text>', 'title of the notification')
    .option('--data <json or file>', 'the whole data object; --alert and --title are added to it')
    .option('--where <json or file>', 'conditions on installations; without it the push goes to all')
    .option('--channels <names...>', 'only subscribers of these channels')
    .option('--prod <dev or prod>', "which of Apple's gateways")
    .option('--expire <seconds>', 'lifetime of each push')
    .option('--flow-control <per second>', 'limit of recipients per second, at least 1000')
    .option('--notification-id <id>', 'name that all pushes have, at most 16 letters and digits');

const definition = z.looseObject({
  id: z.number(),
  name: z.string(),
  expression: z.string(),
  timeZone: z.string(),
  isEnabled: z.boolean(),
  nextAt: z.string().nullable(),
  starts: z.number(),
  missed: z.number(),
  heldBack: z.number(),
});
const path = 'recurring-pushes';
const at = (id: string) => `${path}/${part(id)}`;

async function list(options: AppOption): Promise<Report> {
  const reply = await callApp(options, 'GET', `${path}?limit=200`);
  const { results } = z.looseObject({ results: z.array(definition) }).parse(reply);
  const rows = results.map((one) => [
    one.id,
    one.name,
    one.expression,
    one.timeZone,
    one.nextAt ?? (one.isEnabled ? 'ended' : 'disabled'),
    one.starts,
    one.missed + one.heldBack,
  ]);
  const heads = ['id', 'name', 'expression', 'time zone', 'next', 'pushes', 'left out'];
  return { document: { results }, text: rows.length > 0 ? table(heads, rows) : 'No push recurs.' };
}

async function show(id: string, options: AppOption): Promise<Report> {
  const document = definition.parse(await callApp(options, 'GET', at(id)));
  return { document, text: JSON.stringify(document, null, 2) };
}

async function create(name: string, options: DefinitionOptions & { disabled?: boolean }): Promise<Report> {
  const body = await bodyOf(withoutTime(options));
  const asked = { name, ...timesOf(options, { areRequired: true }), body, isEnabled: !options.disabled };
  return described(await callApp(options, 'POST', path, asked), 'is created');
}

async function change(id: string, options: DefinitionOptions): Promise<Report> {
  const { app: appId, cron, zone, starts, ends, name, ...content } = options;
  const body = Object.keys(content).length > 0 ? { body: await bodyOf(withoutTime(content)) } : {};
  const asked = {
    ...timesOf({ cron, zone, starts, ends }),
    ...(name === undefined ? {} : { name }),
    ...body,
  };
  if (Object.keys(asked).length === 0) throw new UsageError('say what to change');
  return patch(id, { app: appId }, asked);
}

async function patch(id: string, options: AppOption, asked: object): Promise<Report> {
  return described(await callApp(options, 'PATCH', at(id), asked), 'is changed');
}

function described(reply: unknown, verb: string): Report {
  const document = definition.parse(reply);
  const { id, name, nextAt } = document;
  const next = nextAt === null ? 'It makes no push by itself.' : `Its next push is at ${nextAt}.`;
  return { document, text: `Recurring push ${id} (${name}) ${verb}. ${next}` };
}

async function start(id: string, options: AppOption): Promise<Report> {
  const reply = await callApp(options, 'POST', `${at(id)}/start`);
  const document = z.looseObject({ objectId: z.string() }).parse(reply);
  return { document, text: `Push ${document.objectId} is accepted.` };
}

async function remove(id: string, options: AppOption): Promise<Report> {
  const reply = await callApp(options, 'DELETE', at(id));
  return { document: z.looseObject({}).parse(reply), text: `Recurring push ${id} is deleted.` };
}

async function preview({ count, ...options }: TimeOptions & { count?: string }): Promise<Report> {
  const asked = {
    ...timesOf(options, { areRequired: true }),
    ...(count === undefined ? {} : { count: wholeNumber('--count', count, 1) }),
  };
  const reply = await callApp(options, 'POST', `${path}/preview`, asked);
  const document = z.object({ times: z.array(z.object({ at: z.string(), local: z.string() })) }).parse(reply);
  const rows = document.times.map((one) => [one.local, one.at]);
  const text = rows.length > 0 ? table([options.zone ?? 'local', 'UTC'], rows) : 'No time is left.';
  return { document, text };
}

/** Checks that the lifetime of each push is a number of seconds. Throws `UsageError`. */
function withoutTime(options: PushContent): PushContent {
  const { expire } = options;
  if (expire !== undefined) wholeNumber('--expire', expire, 1);
  return options;
}

/** Returns the members of the times. Throws `UsageError` for a missing one. */
function timesOf(
  { cron, zone, starts, ends }: TimeOptions,
  { areRequired = false }: { areRequired?: boolean } = {},
): Record<string, unknown> {
  if (areRequired && (cron === undefined || zone === undefined))
    throw new UsageError('say when: --cron "0 9 * * *" --zone Asia/Shanghai');
  const time = (option: string, text: string) =>
    text === 'none' ? null : futureTime(option, text, systemClock.now());
  return {
    ...(cron === undefined ? {} : { expression: cron }),
    ...(zone === undefined ? {} : { timeZone: zone }),
    ...(starts === undefined ? {} : { startsAt: time('--starts', starts) }),
    ...(ends === undefined ? {} : { endsAt: time('--ends', ends) }),
  };
}
