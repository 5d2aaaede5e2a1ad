import { app, connector, flag, page, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import { gatewayName, say } from '../../language.ts';
import type { Report } from '../../report.ts';
import { row } from '../../row.ts';
import { chooseAppId, connect } from '../../service.ts';

const redriveOptions = {
  app: app(),
  connector: connector(),
  dryRun: flag('--dry-run', 'change nothing: count those that could be processed'),
};

/** `carillon receipts`: calls of gateways that could not be processed. */
export const receiptCommands = [
  row('receipts', 'list calls of gateways with receipts that could not be processed, newest first', {
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
  }),
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
  app: asked,
  connector: only,
  dryRun,
}: Values<typeof redriveOptions>): Promise<Report> {
  const service = await connect();
  const path = { appId: await chooseAppId(service, asked) };
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
    ? say('{processed} calls could be processed. Nothing was changed. {refused} are refused again.', sum)
    : say('{processed} calls were processed. {refused} are refused again.', sum);
  return { document: sum, text };
}
