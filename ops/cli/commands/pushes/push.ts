import { systemClock } from '../../../../shared/clock.ts';
import { dictionaryOrFile, wholeNumber } from '../../input.ts';
import { CommandFailure, type Report, type Shell, UsageError } from '../../report.ts';
import { chooseAppId, connect, part, type ServiceClient } from '../../service.ts';
import { futureTime } from '../../time.ts';
import { describeExplanation } from './explanation.ts';
import { acceptedPush, describeResult, isOpen, type PushRecord, pushRecord, withWarnings } from './result.ts';
import { watchPush } from './watch.ts';

/** Options that make the body of a push. */
export interface PushContent {
  alert?: string;
  title?: string;
  data?: string;
  languages?: string;
  variable?: string[];
  where?: string;
  channels?: string[];
  prod?: string;
  expire?: string;
  at?: string;
  local?: boolean;
  timeZone?: string;
  flowControl?: string;
  transactional?: boolean;
  deviceCap?: string;
  quietHours?: string;
  notificationId?: string;
}

interface PushOptions extends PushContent {
  app?: string;
  reqId?: string;
  dryRun?: boolean;
  explained?: string;
  undo?: string;
  wait: boolean;
}

/** Adds `carillon push`: sends a push and shows its progress. */
export function addPushCommand({ program, act, isJson }: Shell): void {
  program
    .command('push')
    .description('send a push and show its progress until it is done')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option('--alert <text>', 'text of the notification')
    .option('--title <text>', 'title of the notification')
    .option('--data <json or file>', 'the whole data object; --alert and --title are added to it')
    .option(
      '--languages <json or file>',
      'translations of data by language tag: {"en": {"alert": …}}; each device gets that of its locale',
    )
    .option(
      '--variable <name=field:default...>',
      'what {{name}} in alert and title stands for: a field of the installation, or the default',
    )
    .option('--where <json or file>', 'conditions on installations; without it the push goes to all')
    .option('--channels <names...>', 'only subscribers of these channels')
    .option('--prod <dev or prod>', "which of Apple's gateways")
    .option('--expire <seconds or time>', 'lifetime in seconds, or time of expiry (ISO 8601, or +10m)')
    .option('--at <time>', 'time of sending (ISO 8601, or +10m); without it, now')
    .option(
      '--local',
      '--at has no zone (2026-12-01T09:00): each device gets it at that time of its own zone',
    )
    .option('--time-zone <name>', 'with --local: zone of devices without a known one')
    .option('--flow-control <per second>', 'limit of recipients per second, at least 1000')
    .option('--transactional', 'limits of pushes per device do not apply to it')
    .option('--device-cap <pushes>', "pushes per device and day, in place of the app's; 0 for no limit")
    .option(
      '--quiet-hours <from-to or off>',
      "hours such as 22:00-08:00, in place of the app's; off for none",
    )
    .option('--notification-id <id>', 'name of the push, at most 16 letters and digits')
    .option('--req-id <id>', 'id of the request; a repetition within 5 minutes sends nothing')
    .option('--dry-run', 'send nothing: show recipients, payloads and the limits that apply')
    .option('--explained <digest>', 'digest of the dry run: nothing is sent if the audience has moved since')
    .option('--undo <seconds>', 'send so many seconds later, at most 60, until when it can be cancelled')
    .option('--no-wait', 'exit as soon as the push is accepted')
    .action(act((options: PushOptions) => push(options, isJson())));
}

async function push(options: PushOptions, isJson: boolean): Promise<Report> {
  const body = await bodyOf(options);
  const service = await connect();
  const path = `/apps/${part(await chooseAppId(service, options.app))}`;
  if (options.dryRun) return describeExplanation(await service.admin('POST', `${path}/push/explain`, body));
  const reply = acceptedPush.parse(await send(service, { path, body, options }));
  const { objectId, createdAt, warnings } = reply;
  const report = options.wait
    ? await follow({ service, path: `${path}/notifications/${objectId}`, isJson })
    : { document: { objectId, createdAt }, text: `Push ${objectId} is accepted.` };
  return withWarnings(report, warnings);
}

interface Sending {
  /** Path of the app. */
  path: string;
  body: Record<string, unknown>;
  options: Pick<PushOptions, 'explained' | 'undo' | 'reqId'>;
}

/** Sends with the admin token, as the console does: a token of the role sender is enough. Throws `CommandFailure`. */
async function send(service: ServiceClient, { path, body, options }: Sending): Promise<unknown> {
  const { explained, undo, reqId } = options;
  const query = undo === undefined ? '' : `?undoSeconds=${wholeNumber('--undo', undo, 0)}`;
  // The digest is of the body, which a dry run and a push share: the id of the request is a header.
  const headers: Record<string, string> = {
    ...(reqId === undefined ? {} : { 'Idempotency-Key': reqId }),
    ...(explained === undefined ? {} : { 'X-Carillon-Explained': explained }),
  };
  try {
    return await service.admin('POST', `${path}/push${query}`, body, headers);
  } catch (error) {
    if (!(error instanceof CommandFailure) || error.code !== 409 || explained === undefined) throw error;
    throw new CommandFailure(`${error.message} Nothing was sent: run it with --dry-run again.`, error.code);
  }
}

async function follow(watched: {
  service: ServiceClient;
  /** Path of the push. */
  path: string;
  isJson: boolean;
}): Promise<Report> {
  const { service, path, isJson } = watched;
  const read = async (): Promise<PushRecord> => pushRecord.parse(await service.admin('GET', path));
  const first = await read();
  const { objectId } = first;
  if (first.status === 'scheduled')
    return {
      document: first,
      text: `Push ${objectId} is accepted and will be sent at ${first['push-time']}.`,
    };
  const record = isOpen(first) ? await watchPush(read, { isShown: !isJson, clock: systemClock }) : first;
  return { document: record, text: describeResult(record), isBad: record.status !== 'done' };
}

/** Creates the body of `POST /1.1/push` (protocol/push.md#push-call). Throws `UsageError` for invalid options. */
export async function bodyOf(options: PushContent): Promise<Record<string, unknown>> {
  const data = {
    ...(options.data === undefined ? {} : await dictionaryOrFile(options.data)),
    ...(options.alert === undefined ? {} : { alert: options.alert }),
    ...(options.title === undefined ? {} : { title: options.title }),
  };
  if (Object.keys(data).length === 0) throw new UsageError('say what to send: --alert or --data');
  return withoutAbsent({
    data,
    languages: options.languages === undefined ? undefined : await dictionaryOrFile(options.languages),
    variables: variablesOf(options.variable),
    where: options.where === undefined ? undefined : await dictionaryOrFile(options.where),
    channels: options.channels?.flatMap((names) => names.split(',')),
    prod: options.prod,
    ...timeOf(options),
    flow_control:
      options.flowControl === undefined ? undefined : wholeNumber('--flow-control', options.flowControl, 1),
    kind: options.transactional ? 'transactional' : undefined,
    device_cap:
      options.deviceCap === undefined ? undefined : wholeNumber('--device-cap', options.deviceCap, 0),
    quiet_hours: options.quietHours,
    notification_id: options.notificationId,
    ...expiryOf(options.expire),
  });
}

/** Returns the member `variables` of a body for `--variable`; the default may be empty. Throws `UsageError`. */
function variablesOf(given: string[] | undefined): Record<string, unknown> | undefined {
  if (given === undefined) return undefined;
  const variables = given.map((text) => {
    const [, name = '', field, missing] = /^([^=]+)=([^:]+):(.*)$/s.exec(text) ?? [];
    if (field === undefined)
      throw new UsageError('--variable is name=field:default, such as name=profile.name:friend');
    return [name, { field, default: missing }];
  });
  return Object.fromEntries(variables);
}

/** Returns the members of a body for `--at`, `--local` and `--time-zone`. Throws `UsageError`. */
function timeOf({ at, local, timeZone }: PushContent): Record<string, unknown> {
  if (local) {
    if (at === undefined) throw new UsageError('--local goes with --at');
    return { push_time: at, push_time_local: true, default_time_zone: timeZone };
  }
  if (timeZone !== undefined) throw new UsageError('--time-zone goes with --local');
  return at === undefined ? {} : { push_time: futureTime('--at', at, systemClock.now()) };
}

/** Returns the members of a body for `--expire`: seconds, or a time. Throws `UsageError`. */
export function expiryOf(expire: string | undefined): Record<string, unknown> {
  if (expire === undefined) return {};
  return /^\d+$/.test(expire)
    ? { expiration_interval: wholeNumber('--expire', expire, 1) }
    : { expiration_time: futureTime('--expire', expire, systemClock.now()) };
}

function withoutAbsent(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
