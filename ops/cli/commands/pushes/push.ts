import { systemClock } from '../../../../shared/clock.ts';
import { dictionaryOrFile, wholeNumber } from '../../input.ts';
import { type Report, type Shell, UsageError } from '../../report.ts';
import { type AppReply, chooseApp, connect, type ServiceClient } from '../../service.ts';
import { futureTime } from '../../time.ts';
import { describeExplanation } from './explanation.ts';
import { acceptedPush, describeResult, isOpen, type PushRecord, pushRecord, withWarnings } from './result.ts';
import { watchPush } from './watch.ts';

interface PushOptions {
  app?: string;
  alert?: string;
  title?: string;
  data?: string;
  where?: string;
  channels?: string[];
  prod?: string;
  expire?: string;
  at?: string;
  flowControl?: string;
  notificationId?: string;
  reqId?: string;
  dryRun?: boolean;
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
    .option('--where <json or file>', 'conditions on installations; without it the push goes to all')
    .option('--channels <names...>', 'only subscribers of these channels')
    .option('--prod <dev or prod>', "which of Apple's gateways")
    .option('--expire <seconds or time>', 'lifetime in seconds, or time of expiry (ISO 8601, or +10m)')
    .option('--at <time>', 'time of sending (ISO 8601, or +10m); without it, now')
    .option('--flow-control <per second>', 'limit of recipients per second, at least 1000')
    .option('--notification-id <id>', 'name of the push, at most 16 letters and digits')
    .option('--req-id <id>', 'id of the request; a repetition within 5 minutes sends nothing')
    .option('--dry-run', 'send nothing: show recipients, payloads and the limits that apply')
    .option('--no-wait', 'exit as soon as the push is accepted')
    .action(act((options: PushOptions) => push(options, isJson())));
}

async function push(options: PushOptions, isJson: boolean): Promise<Report> {
  const body = await bodyOf(options);
  const service = await connect();
  const app = await chooseApp(service, options.app);
  if (options.dryRun)
    return describeExplanation(
      await service.admin('POST', `/apps/${encodeURIComponent(app.appId)}/push/explain`, body),
    );
  const reply = acceptedPush.parse(await service.asMaster(app, 'POST', '/1.1/push', body));
  const { objectId, warnings } = reply;
  const report = options.wait
    ? await follow({ service, app, objectId, isJson })
    : { document: reply, text: `Push ${objectId} is accepted.` };
  return withWarnings(report, warnings);
}

async function follow(watched: {
  service: ServiceClient;
  app: AppReply;
  objectId: string;
  isJson: boolean;
}): Promise<Report> {
  const { service, app, objectId, isJson } = watched;
  const read = async (): Promise<PushRecord> =>
    pushRecord.parse(await service.asMaster(app, 'GET', `/1.1/tables/Notifications/${objectId}`));
  const first = await read();
  if (first.status === 'scheduled')
    return {
      document: first,
      text: `Push ${objectId} is accepted and will be sent at ${first['push-time']}.`,
    };
  const record = isOpen(first) ? await watchPush(read, { isShown: !isJson, clock: systemClock }) : first;
  return { document: record, text: describeResult(record), isBad: record.status !== 'done' };
}

/** Creates the body of `POST /1.1/push` (protocol/push.md#push-call). Throws `UsageError` for invalid options. */
async function bodyOf(options: PushOptions): Promise<Record<string, unknown>> {
  const data = {
    ...(options.data === undefined ? {} : await dictionaryOrFile(options.data)),
    ...(options.alert === undefined ? {} : { alert: options.alert }),
    ...(options.title === undefined ? {} : { title: options.title }),
  };
  if (Object.keys(data).length === 0) throw new UsageError('say what to send: --alert or --data');
  return withoutAbsent({
    data,
    where: options.where === undefined ? undefined : await dictionaryOrFile(options.where),
    channels: options.channels?.flatMap((names) => names.split(',')),
    prod: options.prod,
    push_time: options.at === undefined ? undefined : futureTime('--at', options.at, systemClock.now()),
    flow_control:
      options.flowControl === undefined ? undefined : wholeNumber('--flow-control', options.flowControl, 1),
    notification_id: options.notificationId,
    req_id: options.reqId,
    ...expiryOf(options.expire),
  });
}

function expiryOf(expire: string | undefined): Record<string, unknown> {
  if (expire === undefined) return {};
  return /^\d+$/.test(expire)
    ? { expiration_interval: wholeNumber('--expire', expire, 1) }
    : { expiration_time: futureTime('--expire', expire, systemClock.now()) };
}

function withoutAbsent(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
