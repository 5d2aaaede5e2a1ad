import type { Reply } from '../../../client/client.ts';
import { text } from '../../arguments.ts';
import { gatewayName, say, words } from '../../language.ts';
import { row } from '../../row.ts';
import { table } from '../../table.ts';

/** `carillon usage` and `quotas`: usage and cost of an app on a day. */
export const usageCommands = [
  row('usage', 'calls, recipients and fees of a day', {
    example: 'usage --from 2027-01-01 --to 2027-01-31',
    operation: 'getUsage',
    query: {
      day: text('--day <YYYY-MM-DD>', 'the day in UTC; without it, today'),
      from: text('--from <YYYY-MM-DD>', 'several days in place of one, up to --to'),
      to: text('--to <YYYY-MM-DD>', 'the last of several days'),
    },
    show: (reply) => ('results' in reply ? describeDays(reply.results) : describeDay(reply)),
  }),
  row('quotas', 'use of the gateways on a day in China, with a forecast of scheduled pushes', {
    example: 'quotas --day 2027-01-31',
    operation: 'getQuotas',
    query: { day: text('--day <YYYY-MM-DD>', 'the day in China; without it, today') },
    show: describeQuotas,
  }),
];

type Day = Exclude<Reply<'getUsage'>, { results: unknown }>;

function describeDay({ day, calls, peakCallsPerMinute, recipients, fees }: Day): string {
  return table(
    ['', day, say('fee in {currency}', { currency: fees.currency })],
    [
      [say('push calls'), calls, fees.calls],
      [say('most push calls in a minute'), peakCallsPerMinute, ''],
      [say('recipients'), recipients, fees.recipients],
      [say('all'), '', fees.total],
    ],
  );
}

function describeDays(days: Day[]): string {
  const currency = days[0]?.fees.currency ?? '';
  const headings = [...words('day', 'push calls', 'recipients'), say('fees in {currency}', { currency })];
  return table(
    headings,
    days.map(({ day, calls, recipients, fees }) => [day, calls, recipients, fees.total]),
  );
}

function describeQuotas({ day, zone, results, app }: Reply<'getQuotas'>): string {
  const rows = results.map((one) => [
    gatewayName(one.connector),
    one.profile,
    one.class === '' ? say('all') : one.class,
    one.used,
    one.forecast ?? '-',
    one.closedReason ?? '-',
  ]);
  const headings = words('gateway', 'profile', 'class', 'used', 'scheduled', 'closed');
  return [
    `${day} (${zone})`,
    table(headings, rows),
    '',
    [
      say('Daily cap (UTC): {used} of {limit} recipients', { used: app.used, limit: app.limit ?? '-' }),
      ...(app.forecast ? [say(', {n} scheduled', { n: app.forecast })] : []),
    ].join(''),
  ].join('\n');
}
