import type { Reply } from '../../../client/client.ts';
import { app, argument, connector, flag, page, type Values, whole } from '../../arguments.ts';
import { command } from '../../command.ts';
import { gatewayName, say, words } from '../../language.ts';
import type { Report } from '../../report.ts';
import { row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';
import { table } from '../../table.ts';

const options = {
  id: argument('<objectId>', 'the push'),
  app: app(),
  progress: flag('--progress', 'outcomes, rate and seconds left'),
  timeline: whole('--timeline <seconds>', 'recipients by connector in steps of so many seconds', 1),
};

/** `carillon record`: a push with its validated request, its progress, or its timeline. */
export const recordCommand = command('record', 'show a push with its request, or how far it is', {
  example: 'record Xk3vD9wq0TgTz1aB --progress',
  takes: options,
  run: show,
});

async function show({
  id,
  app: requestedAppId,
  progress,
  timeline: step,
}: Values<typeof options>): Promise<Report> {
  const service = await connect();
  const path = { id, appId: await chooseAppId(service, requestedAppId) };
  if (step !== undefined)
    return describeTimeline(await service.call('getPushTimeline', { path, query: { step } }));
  const document = await service.call(progress ? 'getPushProgress' : 'getAppPush', { path });
  return { document, text: JSON.stringify(document, null, 2) };
}

function describeTimeline(course: Reply<'getPushTimeline'>): Report {
  const rows = Object.entries(course.connectors).flatMap(([connector, { sent, other }]) =>
    sent.map((count, at) => [
      `+${(at * course.stepMs) / 1000} s`,
      gatewayName(connector),
      count,
      other[at] ?? 0,
    ]),
  );
  const rowsText = table(words('after', 'connector', 'sent', 'other outcomes'), rows);
  return { document: course, text: `${say('From {time}', { time: course.from })}\n\n${rowsText}` };
}

const redriveOptions = {
  app: app(),
  connector: connector(),
  dryRun: flag('--dry-run', 'change nothing: count those that could be processed'),
};

/** `carillon receipts`: receipts from gateways that could not be processed. */
export const receiptCommands = [
  row(
    'receipts',
    'list calls of gateways with receipts that could not be processed, newest first',
    {
      example: 'receipts --connector vendor_a',
      operation: 'listFailedReceipts',
      query: { connector: connector(), ...page() },
      columns: {
        at: 'at',
        gateway: (one) => gatewayName(one.connector),
        bytes: 'bytes',
        status: 'status',
        reason: 'reason',
      },
    },
  ),
  command(
    'receipts redrive',
    'process them again with the credentials of now; those that are refused again stay',
    {
      example: 'receipts redrive --dry-run',
      takes: redriveOptions,
      run: redrive,
    },
  ),
];

async function redrive({
  app: requestedAppId,
  connector: only,
  dryRun,
}: Values<typeof redriveOptions>): Promise<Report> {
  const service = await connect();
  const path = { appId: await chooseAppId(service, requestedAppId) };
  const sum = { processed: 0, refused: 0 };
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const operation = dryRun ? 'explainReceiptRedrive' : 'redriveReceipts';
    const reply = await service.call(operation, { path, body: { connector: only, cursor } });
    sum.processed += reply.processed;
    sum.refused += reply.refused;
    cursor = reply.next ?? undefined;
    isLast = reply.next === null;
  }
  const text = dryRun
    ? say(
        '{processed} calls could be processed. Nothing was changed. {refused} are refused again.',
        sum,
      )
    : say('{processed} calls were processed. {refused} are refused again.', sum);
  return { document: sum, text };
}
