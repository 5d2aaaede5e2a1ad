import { type Command, Option } from 'commander';
import { z } from 'zod';
import { connectorIds, displayName } from '../../../../shared/domain/labels.ts';
import type { Report, Shell } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';
import { app, cursor, type Filters, limit, type PageOptions, pageReport, queryOf } from '../console/pages.ts';

/** Adds `carillon receipts`: calls of gateways that could not be processed. */
export function addReceiptCommands({ program, act }: Shell): void {
  const connector = () => new Option('--connector <id>', 'only of this connector').choices([...connectorIds]);
  const receipts = program
    .command('receipts')
    .description('list calls of gateways with receipts that could not be processed, newest first')
    .option(...app)
    .addOption(connector())
    .option(...limit)
    .option(...cursor)
    .action(act(list));
  receipts
    .command('redrive')
    .description('process them again with the credentials of now; those that are refused again stay')
    .option(...app)
    .addOption(connector())
    .option('--dry-run', 'change nothing: count those that could be processed')
    .action(act((_options: object, command: Command) => redrive(command.optsWithGlobals())));
}

const calls = z.looseObject({
  results: z.array(
    z.looseObject({
      connector: z.string(),
      status: z.number(),
      reason: z.string(),
      bytes: z.number(),
      at: z.string(),
    }),
  ),
  next: z.string().nullable(),
});

async function list({ app: asked, ...filters }: PageOptions & Filters): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, asked));
  const reply = await service.admin('GET', `/apps/${appId}/failed-receipts?${queryOf(filters)}`);
  const { results, next } = calls.parse(reply);
  const rows = results.map((one) => [one.at, displayName(one.connector), one.bytes, one.status, one.reason]);
  return pageReport(reply, { headings: ['at', 'gateway', 'bytes', 'status', 'reason'], rows, next });
}

const redriven = z.looseObject({
  processed: z.number(),
  refused: z.number(),
  next: z.string().nullable(),
});

interface RedriveOptions {
  app?: string;
  connector?: string;
  dryRun?: boolean;
}

async function redrive({ app: asked, connector, dryRun }: RedriveOptions): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, asked));
  const path = `/apps/${appId}/failed-receipts/redrive${dryRun ? '/explain' : ''}`;
  const sum = { processed: 0, refused: 0 };
  let from: string | undefined;
  do {
    const page = redriven.parse(await service.admin('POST', path, { connector, cursor: from }));
    sum.processed += page.processed;
    sum.refused += page.refused;
    from = page.next ?? undefined;
  } while (from !== undefined);
  const done = dryRun ? 'could be processed. Nothing was changed.' : 'were processed.';
  return { document: sum, text: `${sum.processed} calls ${done} ${sum.refused} are refused again.` };
}
