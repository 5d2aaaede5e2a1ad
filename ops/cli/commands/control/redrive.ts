import { redrivenOutcomes } from '../../../../shared/domain/pushes/push.ts';
import type { Input, Reply } from '../../../client/client.ts';
import {
  app,
  choices,
  connector,
  flag,
  optional,
  text,
  timeBefore,
  type Values,
  whole,
} from '../../arguments.ts';
import { command } from '../../command.ts';
import { gatewayName, reasonIn, say, section, sentenceIn, words } from '../../language.ts';
import { CommandFailure, type Report, UsageError } from '../../report.ts';
import { chooseAppId, connect, type ServiceClient } from '../../service.ts';
import { table } from '../../table.ts';
import { expiry } from '../send/push.ts';

/** Limit on the pushes that one command redrives. */
const maxPushes = 200;

const options = {
  id: optional('[objectId]', 'the push'),
  app: app(),
  all: flag('--all', 'every such push instead of one, at most 200, newest first'),
  dryRun: flag('--dry-run', 'send nothing: show how many get it, and the limits that apply'),
  outcomes: choices('--outcome <outcomes...>', 'only with these outcomes', redrivenOutcomes),
  connector: connector(),
  reason: text('--reason <reason>', 'only with this reason, as `carillon failures` shows it'),
  from: timeBefore('--from <time>', 'only those that ended at this time or later (ISO 8601)'),
  to: timeBefore('--to <time>', 'only those that ended before this time (ISO 8601)'),
  includeUnsure: flag(
    '--include-unsure',
    'also those whose gateway did not answer: the push may arrive twice',
  ),
  expire: expiry(),
  flow_control: whole(
    '--flow-control <per second>',
    'limit of recipients per second, at least 1000',
    1,
  ),
  idempotencyKey: text(
    '--idempotency-key <id>',
    'id of the request; a repetition within 5 minutes sends nothing',
  ),
};
type Options = Values<typeof options>;

/** `carillon redrive`: sends finished pushes again to recipients that they did not reach. */
export const redriveCommand = command(
  'redrive',
  'send a finished push again to those who failed, expired or were capped, each at most once',
  {
    example: 'redrive Xk3vD9wq0TgTz1aB --outcome failed --dry-run',
    takes: options,
    run: redrive,
  },
);

interface Redriving {
  service: ServiceClient;
  appId: string;
  body: Input<'redriveAppPush'>['body'];
  headers: Record<string, string>;
}

async function redrive(values: Options): Promise<Report> {
  const { id, app: requestedAppId, all, dryRun, expire, idempotencyKey, ...members } = values;
  if ((id === undefined) === (all === undefined))
    throw new UsageError(say('say which push: an objectId, or --all'));
  const service = await connect();
  const redriving: Redriving = {
    service,
    appId: await chooseAppId(service, requestedAppId),
    body: { ...members, ...expire },
    headers: idempotencyKey === undefined ? {} : { 'Idempotency-Key': idempotencyKey },
  };
  if (id === undefined) return redriveAll(redriving, values);
  if (dryRun) return describeForecast(await explain(redriving, id), members.includeUnsure === true);
  const document = await send(redriving, id);
  return {
    document,
    text: say('Redrive {objectId} is accepted.', { objectId: document.objectId }),
  };
}

const explain = ({ service, appId, body, headers }: Redriving, id: string) =>
  service.call('explainRedrive', { path: { appId, id }, body, headers });

const send = ({ service, appId, body, headers }: Redriving, id: string) =>
  service.call('redriveAppPush', { path: { appId, id }, body, headers });

function describeForecast(reply: Reply<'explainRedrive'>, isUnsureIncluded: boolean): Report {
  const { devices, failures, causes, texts } = reply;
  const left = [
    [failures.redriven, '{devices} a redrive has taken over already'],
    [
      isUnsureIncluded ? 0 : failures.unsure,
      '{devices} may have the message: their gateway did not answer',
    ],
    [failures.gone, '{devices} are deleted, invalid or idle by now'],
    [failures.notKept, '{devices} are not kept'],
  ] as const;
  const text = [
    devices === 1
      ? say('This redrive would go to 1 device. Nothing was sent.')
      : say('This redrive would go to {devices} devices. Nothing was sent.', { devices }),
    ...(isUnsureIncluded && failures.unsure > 0
      ? [
          say(
            'Warning: {devices} of them may get it twice, since their gateway did not answer the first time.',
            { devices: failures.unsure },
          ),
        ]
      : []),
    ...section(
      'Left out:',
      left.flatMap(([n, why]) => (n > 0 ? [say(why, { devices: n })] : [])),
    ),
    ...section(
      'Causes:',
      causes.map(
        ({ n, connector, outcome, reason, meaning }) =>
          `${n} ${gatewayName(connector)} ${outcome}: ${reasonIn(reason, meaning)}`,
      ),
    ),
    ...section('Limits:', texts.limits.map(sentenceIn)),
    '',
    sentenceIn(texts.pace),
  ].join('\n');
  return { document: reply, text };
}

/** Result for one push: its redrive, its dry run, or the refusal. */
type Result = { push: string; reply: unknown } | { push: string; refused: string };

/**
 * Redrives all undelivered pushes one after the other. If a push is refused, continues with the
 * next push.
 */
async function redriveAll(
  redriving: Redriving,
  { connector: only, reason, from, to, dryRun }: Options,
) {
  const { service, appId } = redriving;
  const query = { connector: only, reason, from, to, limit: maxPushes };
  const undelivered = await service.call('listUndelivered', { path: { appId }, query });
  const results: Result[] = [];
  const rows: [string, string | number][] = [];
  for (const { objectId: push } of undelivered.results)
    try {
      const reply = await (dryRun ? explain(redriving, push) : send(redriving, push));
      results.push({ push, reply });
      rows.push([push, 'devices' in reply ? reply.devices : reply.objectId]);
    } catch (error) {
      if (!(error instanceof CommandFailure) || error.code !== 409) throw error;
      results.push({ push, refused: error.message });
      rows.push([push, error.message]);
    }
  const text =
    rows.length > 0
      ? table(words('push', dryRun ? 'devices' : 'redrive'), rows)
      : say('Nothing was found.');
  return { document: { results }, text };
}
