import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';

const usage = z.looseObject({
  day: z.string(),
  calls: z.number(),
  peakCallsPerMinute: z.number(),
  recipients: z.number(),
  fees: z.looseObject({ calls: z.number(), recipients: z.number(), total: z.number(), currency: z.string() }),
});

/** Adds `carillon usage`: usage and cost of an app on a day. */
export function addUsageCommand({ program, act }: Shell): void {
  program
    .command('usage')
    .description('calls, recipients and fees of a day')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option('--day <YYYY-MM-DD>', 'the day in UTC; without it, today')
    .option('--from <YYYY-MM-DD>', 'several days in place of one, up to --to')
    .option('--to <YYYY-MM-DD>', 'the last of several days')
    .action(act(show));
  program
    .command('quotas')
    .description('use of the gateways on a day in China, with a forecast of scheduled pushes')
    .option('--app <appId>', 'the application; not needed when there is only one')
    .option('--day <YYYY-MM-DD>', 'the day in China; without it, today')
    .action(act(showQuotas));
}

interface UsageOptions {
  app?: string;
  day?: string;
  from?: string;
  to?: string;
}

async function show({ app, day, from, to }: UsageOptions): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, app);
  const asked = { ...(day ? { day } : {}), ...(from ? { from } : {}), ...(to ? { to } : {}) };
  const query = new URLSearchParams(asked);
  const reply = await service.admin('GET', `/apps/${part(appId)}/usage?${query}`);
  if (from !== undefined) return describeDays(reply);
  const summary = usage.parse(reply);
  const { calls, recipients, total, currency } = summary.fees;
  const text = table(
    ['', summary.day, `fee in ${currency}`],
    [
      ['push calls', summary.calls, calls],
      ['most push calls in a minute', summary.peakCallsPerMinute, ''],
      ['recipients', summary.recipients, recipients],
      ['all', '', total],
    ],
  );
  return { document: reply, text };
}

function describeDays(document: unknown): Report {
  const { results } = z.object({ results: z.array(usage) }).parse(document);
  const rows = results.map(({ day, calls, recipients, fees }) => [day, calls, recipients, fees.total]);
  const headings = ['day', 'push calls', 'recipients', `fees in ${results[0]?.fees.currency ?? ''}`];
  return { document, text: table(headings, rows) };
}

const quotas = z.looseObject({
  day: z.string(),
  zone: z.string(),
  results: z.array(
    z.looseObject({
      connector: z.string(),
      profile: z.string(),
      class: z.string(),
      used: z.number(),
      closedReason: z.string().nullable(),
      forecast: z.number().nullable(),
    }),
  ),
  app: z.looseObject({ used: z.number(), limit: z.number(), forecast: z.number().nullable() }),
});

async function showQuotas({ app, day }: UsageOptions): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, app));
  const query = new URLSearchParams(day === undefined ? {} : { day });
  const document = await service.admin('GET', `/apps/${appId}/quotas?${query}`);
  const shown = quotas.parse(document);
  const rows = shown.results.map((row) => [
    displayName(row.connector),
    row.profile,
    row.class === '' ? 'all' : row.class,
    row.used,
    row.forecast ?? '-',
    row.closedReason ?? '-',
  ]);
  const { used, limit, forecast } = shown.app;
  const cap = `Daily cap (UTC): ${used} of ${limit} recipients${forecast ? `, ${forecast} scheduled` : ''}`;
  const headings = ['gateway', 'profile', 'class', 'used', 'scheduled', 'closed'];
  return { document, text: `${shown.day} (${shown.zone})\n${table(headings, rows)}\n\n${cap}` };
}
