import { z } from 'zod';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseApp, connect } from '../../service.ts';

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
    .action(act(show));
}

async function show({ app, day }: { app?: string; day?: string }): Promise<Report> {
  const service = await connect();
  const { appId } = await chooseApp(service, app);
  const query = day === undefined ? '' : `?${new URLSearchParams({ day })}`;
  const reply = await service.admin('GET', `/apps/${encodeURIComponent(appId)}/usage${query}`);
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
