import { displayName } from '../../../../shared/domain/labels.ts';
import type { Reply } from '../../../client/client.ts';
import type { Report } from '../../report.ts';
import { table } from '../../table.ts';
import { describeLanguage, describeVariable } from './result.ts';

/** The reply without the members that are not shown. */
type Explanation = Omit<Reply<'explainPush'>, 'texts' | 'forecast'>;

/** Describes what a push would do. The document is the unchanged reply. */
export function describeExplanation(reply: Explanation): Report {
  const { starts = [], languages = [], variables = [], warnings = [], quietHours } = reply;
  const shares = Object.entries(reply.connectors);
  const rows = shares.map(([connector, { devices, profiles, payloadBytes }]) => [
    displayName(connector),
    devices,
    payloadBytes ?? '-',
    Object.entries(profiles)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  ]);
  const problems = shares.flatMap(([id, { problem }]) =>
    problem === undefined ? [] : [`${displayName(id)}: ${problem}`],
  );
  const time = reply.estimatedSeconds === null ? '' : `It takes about ${reply.estimatedSeconds} s: `;
  const text = [
    `This push would go to ${reply.devices} devices. Nothing was sent.`,
    ...(rows.length > 0 ? ['', table(['connector', 'devices', 'bytes', 'profiles'], rows)] : []),
    ...section('Starts', starts.map(describeStart)),
    ...section(
      'Quiet hours end',
      (quietHours?.ends ?? []).map(({ at, devices }) => `${at}  ${devices}`),
    ),
    ...section('Languages', languages.map(describeLanguage)),
    ...section('Variables', variables.map(describeVariable)),
    ...section('Warnings', warnings),
    ...section('Problems', problems),
    ...section('Limits', reply.limits),
    '',
    `${time}${reply.pace}`,
    ...section('Database', [
      ...reply.plan,
      ...(reply.warning === undefined ? [] : [`Warning: ${reply.warning}`]),
    ]),
    '',
    `To send to this audience only: --explained ${reply.digest}`,
  ].join('\n');
  return { document: reply, text };
}

const describeStart = ({
  at,
  devices,
  isLate,
}: NonNullable<Reply<'explainPush'>['starts']>[number]): string =>
  `${at}  ${devices}${isLate ? ' (too late)' : ''}`;

const section = (title: string, lines: string[]): string[] =>
  lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
