import { Option } from 'commander';
import { systemClock } from '../../../../shared/clock.ts';
import { asUnchecked, type Reply, type Unchecked } from '../../../client/client.ts';
import {
  app,
  flag,
  json,
  list,
  optional,
  parsed,
  type Source,
  text,
  type Values,
  whole,
} from '../../arguments.ts';
import { command } from '../../command.ts';
import { wholeNumber } from '../../input.ts';
import { type English, gatewayName, say, words } from '../../language.ts';
import { CommandFailure, futureTime, printLine, type Report, UsageError } from '../../report.ts';
import { row } from '../../row.ts';
import { chooseAppId, connect, type ServiceClient } from '../../service.ts';
import { table } from '../../table.ts';
import { contentOf, contentOptions } from './content.ts';
import {
  describeExplanation,
  describeResult,
  isOpen,
  recordOf,
  watchPush,
  withWarnings,
} from './result.ts';

/** Members of a push body that limit its lifetime. */
interface Expiry {
  expiration_interval?: number;
  expiration_time?: string;
}

/** Option for the lifetime of a push: a number of seconds, or a time. */
export const expiry = (): Source<Expiry> =>
  parsed(
    '--expire <seconds or time>',
    'lifetime in seconds, or time of expiry (ISO 8601, or +10m)',
    expiryOf,
  );

const expiryOf = (name: string, value: string): Expiry =>
  /^\d+$/.test(value)
    ? { expiration_interval: wholeNumber(name, value, 1) }
    : { expiration_time: futureTime(name, value, systemClock.now()) };

/** Field and default for each `{{name}}` in the text. */
type Variables = Record<string, { field: string; default: string }>;

const bodyOptions = {
  ...contentOptions(),
  languages: json(
    '--languages <json or file>',
    'translations of data by language tag: {"en": {"alert": …}}; each device gets that of its locale',
  ),
  variables: variables(),
  expire: expiry(),
  at: text('--at <time>', 'time of sending (ISO 8601, or +10m); without it, now'),
  local: flag(
    '--local',
    '--at has no zone (2026-12-01T09:00): each device gets it at that time of its own zone',
  ),
  timeZone: text('--time-zone <name>', 'with --local: zone of devices without a known one'),
  transactional: flag('--transactional', 'limits of pushes per device do not apply to it'),
  device_cap: whole(
    '--device-cap <pushes>',
    "pushes per device and day, in place of the app's; 0 for no limit",
  ),
  quiet_hours: text(
    '--quiet-hours <from-to or off>',
    "hours such as 22:00-08:00, in place of the app's; off for none",
  ),
};

const sendingOptions = {
  app: app(),
  reqId: text('--req-id <id>', 'id of the request; a repetition within 5 minutes sends nothing'),
  dryRun: flag('--dry-run', 'send nothing: show recipients, payloads and the limits that apply'),
  explained: text(
    '--explained <digest>',
    'digest of the dry run: nothing is sent if the audience has moved since',
  ),
  undo: whole(
    '--undo <seconds>',
    'send so many seconds later, at most 60, until when it can be cancelled',
  ),
  wait: flag('--no-wait', 'exit as soon as the push is accepted'),
};

/** `carillon push`: sends a push and shows its progress. */
export const pushCommand = command('push', 'send a push and show its progress until it is done', {
  example: `push --alert 'Hello' --where '{"deviceType":"ios"}' --dry-run`,
  takes: { ...bodyOptions, ...sendingOptions },
  run: push,
});

type BodyValues = Values<typeof bodyOptions>;
type SendingValues = Values<typeof sendingOptions>;

async function push(
  values: BodyValues & SendingValues,
  { isJson }: { isJson: boolean },
): Promise<Report> {
  const { app: requestedAppId, reqId, dryRun, explained, undo, wait, ...bodyValues } = values;
  const body = bodyOf(bodyValues);
  const service = await connect();
  const appId = await chooseAppId(service, requestedAppId);
  if (dryRun)
    return describeExplanation(await service.call('explainPush', { path: { appId }, body }));
  const sent = await send(service, { appId, body, options: { reqId, explained, undo } });
  const { objectId, createdAt, warnings } = sent;
  const report = wait
    ? await follow(service, { path: { appId, id: objectId }, isJson })
    : {
        document: { objectId, createdAt },
        text: say('Push {objectId} is accepted.', { objectId }),
      };
  return withWarnings(report, warnings);
}

interface Sending {
  appId: string;
  body: Unchecked;
  options: Pick<SendingValues, 'explained' | 'undo' | 'reqId'>;
}

/**
 * Sends with the admin token, like the console. A token with the role sender is sufficient. Throws
 * `CommandFailure`.
 */
async function send(service: ServiceClient, { appId, body, options }: Sending) {
  const { explained, undo: undoSeconds, reqId } = options;
  // The request id is a header, because a dry run and the push must have the same body digest.
  const headers: Record<string, string> = {
    ...(reqId === undefined ? {} : { 'Idempotency-Key': reqId }),
    ...(explained === undefined ? {} : { 'X-Carillon-Explained': explained }),
  };
  try {
    return await service.call('sendAppPush', {
      path: { appId },
      query: { undoSeconds },
      body,
      headers,
    });
  } catch (error) {
    if (!(error instanceof CommandFailure) || error.code !== 409 || explained === undefined)
      throw error;
    throw new CommandFailure(
      say('{error} Nothing was sent: run it with --dry-run again.', { error: error.message }),
      error.code,
    );
  }
}

interface Watched {
  path: { appId: string; id: string };
  isJson: boolean;
}

async function follow(service: ServiceClient, { path, isJson }: Watched): Promise<Report> {
  const read = async () => recordOf(await service.call('getAppPush', { path }));
  const first = await read();
  const { objectId } = first;
  if (first.status === 'scheduled')
    return {
      document: first,
      text: say('Push {objectId} is accepted and will be sent at {time}.', {
        objectId,
        time: first['push-time'],
      }),
    };
  // JSON shows no progress, so the command says why it does not exit yet.
  if (isJson && isOpen(first))
    printLine(
      say('Push {objectId} is accepted. Waiting for its end; --no-wait does not wait.', {
        objectId,
      }),
    );
  const record = isOpen(first)
    ? await watchPush(read, { isShown: !isJson, clock: systemClock })
    : first;
  return { document: record, text: describeResult(record), isBad: record.status !== 'done' };
}

/** Builds the body of `POST …/push`. Throws `UsageError` for invalid options. */
function bodyOf(values: BodyValues): Unchecked {
  const { languages, variables, expire, at, local, timeZone, transactional, ...rest } = values;
  const { device_cap, quiet_hours, ...content } = rest;
  return asUnchecked({
    ...contentOf(content),
    languages,
    variables,
    device_cap,
    quiet_hours,
    ...timeOf({ at, local, timeZone }),
    ...(transactional ? { kind: 'transactional' } : {}),
    ...expire,
  });
}

/** Option for the variables of a push. A default may be empty. */
function variables(): Source<Variables> {
  const option = new Option(
    '--variable <name=field:default...>',
    'what {{name}} in alert and title stands for: a field of the installation, or the default' satisfies English,
  );
  const add = (value: string, before: Variables = {}): Variables => {
    const [, name = '', field, missing = ''] = /^([^=]+)=([^:]+):(.*)$/s.exec(value) ?? [];
    if (field === undefined)
      throw new UsageError(
        say('--variable is name=field:default, such as name=profile.name:friend'),
      );
    return { ...before, [name]: { field, default: missing } };
  };
  return { declared: option.argParser(add) };
}

/** Returns the body members for `--at`, `--local` and `--time-zone`. Throws `UsageError`. */
function timeOf({ at, local, timeZone }: Pick<BodyValues, 'at' | 'local' | 'timeZone'>) {
  if (local) {
    if (at === undefined) throw new UsageError(say('--local goes with --at'));
    return { push_time: at, push_time_local: true, default_time_zone: timeZone };
  }
  if (timeZone !== undefined) throw new UsageError(say('--time-zone goes with --local'));
  return at === undefined ? {} : { push_time: futureTime('--at', at, systemClock.now()) };
}

/**
 * `carillon audience`, `fields` and `channels`: the devices that a push would reach, and their
 * fields and channels.
 */
export const audienceCommands = [
  row('audience', 'count the devices that a push would go to, by connector', {
    example: `audience --where '{"deviceType":"ios"}' --clauses`,
    operation: 'countAudience',
    body: {
      where: json('--where <json or file>', 'conditions on installations; without it all count'),
      channels: list('--channels <names...>', 'only subscribers of these channels'),
      clauses: flag('--clauses', 'also count without each part of the condition'),
      sample: whole('--sample <n>', 'devices to show, at most 20'),
    },
    show: describe,
  }),
  row('fields', 'list members of the newest devices', {
    example: 'fields device',
    operation: 'suggestFields',
    query: { prefix: optional('[prefix]') },
    show: asLines,
  }),
  row('channels', 'list channels of the newest devices', {
    example: 'channels ne',
    operation: 'suggestChannels',
    query: { prefix: optional('[prefix]') },
    show: asLines,
  }),
];

function asLines({ results }: { results: unknown[] }): string {
  return results.map((one) => JSON.stringify(one)).join('\n');
}

function describe(found: Reply<'countAudience'>): string {
  const { isLeast, devices, connectors, problems, clauses = [], sample, warning } = found;
  const rows = Object.entries(connectors).map(([id, n]) => [gatewayName(id), n]);
  return [
    isLeast
      ? say('At least {devices} devices.', { devices })
      : say('{devices} devices.', { devices }),
    ...(rows.length > 0 ? ['', table(words('connector', 'devices'), rows)] : []),
    ...Object.entries(problems).map(([problem, n]) => `${problem}: ${n}`),
    ...clauses.map(({ text, without }) =>
      say('without {clause}: {n}', { clause: text, n: without ?? say('not counted in time') }),
    ),
    ...sample.map((device) => JSON.stringify(device)),
    ...(warning === undefined ? [] : [say('Warning: {warning}', { warning })]),
  ].join('\n');
}
