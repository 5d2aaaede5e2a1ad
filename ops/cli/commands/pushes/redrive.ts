import { Option } from 'commander';
import { z } from 'zod';
import { systemClock } from '../../../../shared/clock.ts';
import { connectorIds, displayName } from '../../../../shared/domain/labels.ts';
import { redrivenOutcomes } from '../../../../shared/domain/pushes/push.ts';
import { wholeNumber } from '../../input.ts';
import { ownText, reasonIn, section, sentenceIn } from '../../language.ts';
import { CommandFailure, type Report, type Shell, table, UsageError } from '../../report.ts';
import { chooseAppId, connect, part, type ServiceClient } from '../../service.ts';
import { pastTime } from '../../time.ts';
import { app, cursor, type Filters, limit, type PageOptions, pageReport, queryOf } from '../console/pages.ts';
import { expiryOf } from './push.ts';

interface RedriveOptions {
  app?: string;
  all?: boolean;
  dryRun?: boolean;
  outcome?: string[];
  connector?: string;
  reason?: string;
  from?: string;
  to?: string;
  expire?: string;
  includeUnsure?: boolean;
  flowControl?: string;
  idempotencyKey?: string;
}

/** Pushes that one command redrives. */
const maxPushes = 200;

/** Adds `carillon redrive`: sends finished pushes again to those that they did not reach; and `carillon undelivered`. */
export function addRedriveCommands({ program, act }: Shell): void {
  const connector = () => new Option('--connector <id>', 'only of this connector').choices([...connectorIds]);
  program
    .command('redrive [objectId]')
    .description('send a finished push again to those who failed, expired or were capped, each at most once')
    .option(...app)
    .option('--all', 'every such push instead of one, at most 200, newest first')
    .option('--dry-run', 'send nothing: show how many get it, and the limits that apply')
    .addOption(
      new Option('--outcome <outcomes...>', 'only with these outcomes').choices([...redrivenOutcomes]),
    )
    .addOption(connector())
    .option('--reason <reason>', 'only with this reason, as `carillon failures` shows it')
    .option('--from <time>', 'only those that ended at this time or later (ISO 8601)')
    .option('--to <time>', 'only those that ended before this time (ISO 8601)')
    .option('--include-unsure', 'also those whose gateway did not answer: the push may arrive twice')
    .option('--expire <seconds or time>', 'lifetime in seconds, or time of expiry (ISO 8601, or +10m)')
    .option('--flow-control <per second>', 'limit of recipients per second, at least 1000')
    .option('--idempotency-key <id>', 'id of the request; a repetition within 5 minutes sends nothing')
    .action(act(redrive));
  program
    .command('undelivered')
    .description('list finished pushes with recipients that failed, expired or were capped, newest first')
    .option(...app)
    .addOption(connector())
    .option('--reason <reason>', 'only pushes with a recipient that has this reason')
    .option('--from <time>', 'finished at this time or later (ISO 8601)')
    .option('--to <time>', 'accepted before this time (ISO 8601)')
    .option(...limit)
    .option(...cursor)
    .action(act(listUndelivered));
}

interface Redriving {
  service: ServiceClient;
  appId: string;
  body: Record<string, unknown>;
  options: RedriveOptions;
}

async function redrive(objectId: string | undefined, options: RedriveOptions): Promise<Report> {
  if ((objectId === undefined) === (options.all === undefined))
    throw new UsageError('say which push: an objectId, or --all');
  const body = bodyOf(options);
  const service = await connect();
  const appId = await chooseAppId(service, options.app);
  const redriving = { service, appId, body, options };
  if (objectId === undefined) return redriveAll(redriving);
  const reply = await call(redriving, objectId);
  return options.dryRun ? describeForecast(reply, options.includeUnsure === true) : describeSent(reply);
}

const pathOf = ({ appId, options }: Redriving, objectId: string): string =>
  `/apps/${part(appId)}/notifications/${part(objectId)}/redrive${options.dryRun ? '/explain' : ''}`;

function call(redriving: Redriving, objectId: string): Promise<unknown> {
  const { service, body, options } = redriving;
  const { idempotencyKey } = options;
  const headers: Record<string, string> =
    idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey };
  return service.admin('POST', pathOf(redriving, objectId), body, headers);
}

const accepted = z.looseObject({ objectId: z.string() });

function describeSent(reply: unknown): Report {
  const { objectId } = accepted.parse(reply);
  return { document: reply, text: `Redrive ${objectId} is accepted.` };
}

const sentence = z.looseObject({ text: z.string(), zh: z.string() });

const forecast = z.looseObject({
  devices: z.number(),
  failures: z.looseObject({
    selected: z.number(),
    redriven: z.number(),
    unsure: z.number(),
    gone: z.number(),
    notKept: z.number(),
  }),
  causes: z.array(
    z.looseObject({
      ...{ connector: z.string(), outcome: z.string(), reason: z.string(), n: z.number() },
      meaning: z.looseObject({ code: z.string(), zh: z.string() }),
    }),
  ),
  texts: z.looseObject({ limits: z.array(sentence), pace: sentence }),
});

function describeForecast(reply: unknown, isUnsureIncluded: boolean): Report {
  const { devices, failures, causes, texts } = forecast.parse(reply);
  const left = [
    [failures.redriven, 'redriven'],
    [isUnsureIncluded ? 0 : failures.unsure, 'unsure'],
    [failures.gone, 'gone'],
    [failures.notKept, 'notKept'],
  ] as const;
  const text = [
    ownText('redriveTo', { devices }),
    ...(isUnsureIncluded && failures.unsure > 0 ? [ownText('mayRepeat', { devices: failures.unsure })] : []),
    ...section(
      'leftOut',
      left.flatMap(([n, why]) => (n > 0 ? [ownText(why, { devices: n })] : [])),
    ),
    ...section(
      'causes',
      causes.map(
        ({ n, connector, outcome, reason, meaning }) =>
          `${n} ${displayName(connector)} ${outcome}: ${reasonIn(reason, meaning)}`,
      ),
    ),
    ...section('limits', texts.limits.map(sentenceIn)),
    '',
    sentenceIn(texts.pace),
  ].join('\n');
  return { document: reply, text };
}

const undelivered = z.looseObject({
  results: z.array(
    z.looseObject({
      objectId: z.string(),
      failed: z.number(),
      expired: z.number(),
      capped: z.number(),
      redriven: z.number(),
    }),
  ),
  next: z.string().nullable(),
});

async function listUndelivered({ app: asked, ...filters }: PageOptions & Filters): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, asked));
  const reply = await service.admin('GET', `/apps/${appId}/undelivered?${queryOf(filters)}`);
  const { results, next } = undelivered.parse(reply);
  const rows = results.map((one) => [one.objectId, one.failed, one.expired, one.capped, one.redriven]);
  return pageReport(reply, { headings: ['push', 'failed', 'expired', 'capped', 'redriven'], rows, next });
}

/** What became of one push: its redrive, the dry run of it, or the refusal. */
type Result = { push: string; reply: unknown } | { push: string; refused: string };

/** Redrives every undelivered push, one after the other; a push that is refused does not stop the others. */
async function redriveAll(redriving: Redriving): Promise<Report> {
  const { service, appId, options } = redriving;
  const { connector, reason } = options;
  const times = { from: timeOf('--from', options.from), to: timeOf('--to', options.to) };
  const query = queryOf({ connector, reason, ...times, limit: String(maxPushes) });
  const list = await service.admin('GET', `/apps/${part(appId)}/undelivered?${query}`);
  const results: Result[] = [];
  for (const { objectId: push } of undelivered.parse(list).results)
    try {
      results.push({ push, reply: await call(redriving, push) });
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.code !== 409) throw error;
      results.push({ push, refused: error.message });
    }
  const rows = results.map((result) => [
    result.push,
    'refused' in result ? result.refused : options.dryRun ? devicesOf(result.reply) : idOf(result.reply),
  ]);
  const text =
    rows.length > 0 ? table(['push', options.dryRun ? 'devices' : 'redrive'], rows) : 'Nothing was found.';
  return { document: { results }, text };
}

const devicesOf = (reply: unknown): number => forecast.parse(reply).devices;
const idOf = (reply: unknown): string => accepted.parse(reply).objectId;

const timeOf = (option: string, text: string | undefined): string | undefined =>
  text === undefined ? undefined : pastTime(option, text, systemClock.now());

function bodyOf(options: RedriveOptions): Record<string, unknown> {
  const { outcome, connector, reason, expire, flowControl } = options;
  return {
    outcomes: outcome,
    connector,
    reason,
    from: timeOf('--from', options.from),
    to: timeOf('--to', options.to),
    includeUnsure: options.includeUnsure,
    flow_control: flowControl === undefined ? undefined : wholeNumber('--flow-control', flowControl, 1),
    ...expiryOf(expire),
  };
}
