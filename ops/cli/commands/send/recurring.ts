import { systemClock } from '../../../../shared/clock.ts';
import { asUnchecked, type Reply } from '../../../client/client.ts';
import {
  app,
  argument,
  flag,
  parsed,
  required,
  text,
  type Values,
  whole,
} from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { type English, say, sentences } from '../../language.ts';
import { futureTime, type Report, UsageError } from '../../report.ts';
import { type Columns, type Item, listed, row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';
import { table } from '../../table.ts';
import { type Content, contentOf, contentOptions } from './content.ts';

const number = () => argument('<id>', 'number of the recurring push');

/** Option with a time in the future. The value is null for `none`. */
const end = (flags: string, about: English) =>
  parsed(flags, about, (name, value) =>
    value === 'none' ? null : futureTime(name, value, systemClock.now()),
  );

const cron = () =>
  text(
    '--cron <expression>',
    'minute, hour, day of the month, month, day of the week: "0 9 * * 1-5"',
  );
const zone = () =>
  text('--zone <time zone>', 'IANA time zone of the expression, such as Asia/Shanghai');

const ends = () => ({
  startsAt: end('--starts <time>', 'no push before (ISO 8601, or +10m), or none'),
  endsAt: end('--ends <time>', 'no push from then on (ISO 8601, or +10m), or none'),
});

const content = () => ({
  ...contentOptions(),
  expiration_interval: whole('--expire <seconds>', 'lifetime of each push', 1),
});

const createOptions = {
  name: argument('<name>'),
  expression: required(cron()),
  timeZone: required(zone()),
  ...ends(),
  ...content(),
  disabled: flag('--disabled', 'makes no push until it is enabled'),
  app: app(),
};

const changeOptions = {
  id: number(),
  name: text('--name <name>', 'another name'),
  expression: cron(),
  timeZone: zone(),
  ...ends(),
  ...content(),
  app: app(),
};

/** `carillon recurring …`: definitions of recurring pushes, and their next runs. */
export const recurringCommands = [
  group('recurring', 'pushes that are made at the times of a cron expression'),
  command('recurring list', 'list the recurring pushes, the newest first', {
    takes: { app: app() },
    run: ({ app: requestedAppId }) => listRecurring(requestedAppId),
  }),
  row('recurring show', 'show one', {
    example: 'recurring show 7',
    operation: 'getRecurringPush',
    path: { id: number() },
  }),
  command('recurring create', 'create one', {
    example: `recurring create Morning --cron '0 9 * * 1-5' --zone Asia/Shanghai --alert 'Good morning'`,
    takes: createOptions,
    run: create,
  }),
  command('recurring change', 'change one; content that is given replaces the whole body', {
    example: `recurring change 7 --cron '30 8 * * 1-5'`,
    takes: changeOptions,
    run: change,
  }),
  row('recurring enable', 'make pushes again', {
    example: 'recurring enable 7',
    operation: 'changeRecurringPush',
    path: { id: number() },
    always: { body: { isEnabled: true } },
    show: describeChange,
  }),
  row('recurring disable', 'make no more pushes', {
    example: 'recurring disable 7',
    operation: 'changeRecurringPush',
    path: { id: number() },
    always: { body: { isEnabled: false } },
    show: describeChange,
  }),
  row('recurring start', 'make a push now; the times stay', {
    example: 'recurring start 7',
    operation: 'startRecurringPush',
    path: { id: number() },
    show: ({ objectId }) => say('Push {objectId} is accepted.', { objectId }),
  }),
  row('recurring delete', 'delete one; its pushes stay', {
    example: 'recurring delete 7',
    operation: 'deleteRecurringPush',
    path: { id: number() },
    show: (_reply, { id }) => say('Recurring push {id} is deleted.', { id }),
  }),
  row('recurring preview', 'show the next times of an expression, and store nothing', {
    example: `recurring preview --cron '0 9 * * 1-5' --zone Asia/Shanghai --count 3`,
    operation: 'previewRecurringPush',
    body: {
      expression: required(cron()),
      timeZone: required(zone()),
      ...ends(),
      count: whole('--count <n>', 'times to show, at most 50', 1),
    },
    show: ({ times }, { timeZone }) => describeTimes(times, timeZone),
  }),
];

const columns: Columns<Item<'listRecurringPushes'>> = {
  id: 'id',
  name: 'name',
  expression: 'expression',
  'time zone': 'timeZone',
  next: ({ nextAt, isEnabled }) => nextAt ?? say(isEnabled ? 'ended' : 'disabled'),
  pushes: 'starts',
  'left out': ({ missed, heldBack }) => missed + heldBack,
};

function describeTimes(
  times: Reply<'previewRecurringPush'>['times'],
  timeZone = say('local'),
): string {
  const rows = times.map(({ local, at }) => [local, at]);
  return rows.length > 0 ? table([timeZone, 'UTC'], rows) : say('No time is left.');
}

async function listRecurring(requestedAppId: string | undefined): Promise<Report> {
  const service = await connect();
  const path = { appId: await chooseAppId(service, requestedAppId) };
  const { results } = await service.call('listRecurringPushes', { path, query: { limit: 200 } });
  return { document: { results }, text: listed(results, columns, { none: 'No push recurs.' }) };
}

async function create(values: Values<typeof createOptions>): Promise<Report> {
  const {
    app: requestedAppId,
    name,
    expression,
    timeZone,
    startsAt,
    endsAt,
    disabled,
    ...body
  } = values;
  const service = await connect();
  const path = { appId: await chooseAppId(service, requestedAppId) };
  const definition = { expression, timeZone, startsAt, endsAt, isEnabled: !disabled };
  const reply = await service.call('createRecurringPush', {
    path,
    body: asUnchecked({ name, ...definition, body: contentOf(body) }),
  });
  return { document: reply, text: describe(reply, 'Recurring push {id} ({name}) is created.') };
}

async function change(values: Values<typeof changeOptions>): Promise<Report> {
  const {
    app: requestedAppId,
    id,
    name,
    expression,
    timeZone,
    startsAt,
    endsAt,
    ...content
  } = values;
  const body = { name, expression, timeZone, startsAt, endsAt, ...bodyIfAny(content) };
  if (Object.values(body).every((value) => value === undefined))
    throw new UsageError(say('say what to change'));
  const service = await connect();
  const path = { id, appId: await chooseAppId(service, requestedAppId) };
  const reply = await service.call('changeRecurringPush', { path, body: asUnchecked(body) });
  return { document: reply, text: describeChange(reply) };
}

const bodyIfAny = (content: Content) =>
  Object.values(content).every((value) => value === undefined) ? {} : { body: contentOf(content) };

function describe(
  { id, name, nextAt }: Reply<'createRecurringPush'>,
  done: 'Recurring push {id} ({name}) is created.' | 'Recurring push {id} ({name}) is changed.',
): string {
  const next =
    nextAt === null
      ? say('It makes no push by itself.')
      : say('Its next push is at {nextAt}.', { nextAt });
  return sentences(say(done, { id, name }), next);
}

function describeChange(reply: Reply<'changeRecurringPush'>): string {
  return describe(reply, 'Recurring push {id} ({name}) is changed.');
}
