import { connectorIds } from '../../../../shared/domain/labels.ts';
import type { Reply } from '../../../client/client.ts';
import { choice, text } from '../../arguments.ts';
import { gatewayName, reasonIn, say, words } from '../../language.ts';
import { row } from '../../row.ts';
import { padded, table } from '../../table.ts';

/** `carillon overview`: pushes in progress, and problems that need attention. */
export const overviewCommand = row(
  'overview',
  'show what is being sent, what needs the operator, and the use of today',
  {
    operation: 'getOverview',
    query: { app: text('--app <appId>', 'only of this application') },
    show: describe,
  },
);

function describe({
  running,
  scheduled,
  today,
  outcomes24h,
  ...attention
}: Reply<'getOverview'>): string {
  const rows = running.map((one) => [one.objectId, one.appId, one.state, one.devices]);
  const outcomes = Object.entries(outcomes24h).map(([name, count]) => `${name} ${count}`);
  return [
    rows.length > 0
      ? table(words('push', 'app', 'state', 'devices'), rows)
      : say('Nothing is being sent.'),
    `${padded(say('scheduled'), 15)}${scheduled}`,
    `${padded(say('today (UTC)'), 15)}${useOf(today)}`,
    `${padded(say('last 24 hours'), 15)}${outcomes.join(', ') || '-'}`,
    ...attentionOf(attention),
  ].join('\n');
}

const useOf = ({ recipients, cap, calls }: Reply<'getOverview'>['today']): string =>
  cap === null
    ? say('{recipients} recipients, {calls} calls', { recipients, calls })
    : say('{recipients} of {cap} recipients, {calls} calls', { recipients, cap, calls });

type Attention = Pick<Reply<'getOverview'>, 'breakersOpen' | 'profilesExpiring' | 'findings'>;

/** Describes each problem that needs attention in one line. */
function attentionOf({ breakersOpen, profilesExpiring, findings }: Attention): string[] {
  const nameOf = ({
    appId,
    connector,
    profile,
  }: Record<'appId' | 'connector' | 'profile', string>) =>
    say('{gateway} {profile} of {appId}', { gateway: gatewayName(connector), profile, appId });
  const lines = [
    ...breakersOpen.map((one) =>
      say('breaker {state}: {profile}', { state: one.state, profile: nameOf(one) }),
    ),
    ...profilesExpiring.map((one) =>
      say('expires {at}: {profile}', { at: one.expiresAt, profile: nameOf(one) }),
    ),
    ...findings.map((one) =>
      say('problem: {profile}: {problems}', {
        profile: nameOf(one),
        problems: one.problems.map((problem, at) => reasonIn(problem, one.meanings[at])).join(' '),
      }),
    ),
  ];
  return lines.length > 0 ? lines : [say('Gateways answer, credentials are valid.')];
}

/** `carillon usage` and `quotas`: usage and cost of an app per day. */
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
  row('report', 'pushes, outcomes and opens by day, of up to two years', {
    example: 'report --from 2027-01-01 --to 2027-01-31',
    operation: 'getReport',
    query: {
      from: text('--from <YYYY-MM-DD>', 'the first day in UTC; without it, 30 days'),
      to: text('--to <YYYY-MM-DD>', 'the last day in UTC; without it, today'),
      connector: choice('--connector <id>', 'only of this connector', connectorIds),
      class: text('--class <class>', 'only pushes of this message class'),
    },
    show: describeReport,
  }),
  row('quotas', 'use of the gateways on a day in China, with a forecast of scheduled pushes', {
    example: 'quotas --day 2027-01-31',
    operation: 'getQuotas',
    query: { day: text('--day <YYYY-MM-DD>', 'the day in China; without it, today') },
    show: describeQuotas,
  }),
];

/** Writes the days of a report that have pushes, and the most frequent reasons. */
function describeReport({ days, reasons }: Reply<'getReport'>): string {
  const rows = days
    .filter(({ pushes }) => pushes > 0)
    .map((one) => [
      one.day,
      one.pushes,
      one.sent,
      one.delivered,
      one.clicked,
      one.opened,
      one.failed,
      one.invalid_token,
    ]);
  if (rows.length === 0) return say('There were no pushes on these days.');
  const headings = words(
    'day',
    'pushes',
    'sent',
    'delivered',
    'clicked',
    'opened',
    'failed',
    'invalid tokens',
  );
  const failures = reasons.map(({ connector, reason, meaning, n }) => [
    n,
    gatewayName(connector),
    reasonIn(reason, meaning),
  ]);
  if (failures.length === 0) return table(headings, rows);
  return `${table(headings, rows)}\n\n${table(words('failures', 'gateway', 'reason'), failures)}`;
}

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
  const headings = [
    ...words('day', 'push calls', 'recipients'),
    say('fees in {currency}', { currency }),
  ];
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
      say('Daily cap (UTC): {used} of {limit} recipients', {
        used: app.used,
        limit: app.limit ?? '-',
      }),
      ...(app.forecast ? [say(', {n} scheduled', { n: app.forecast })] : []),
    ].join(''),
  ].join('\n');
}
