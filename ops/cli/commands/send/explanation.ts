import { displayName } from '../../../../shared/domain/labels.ts';
import type { Reply } from '../../../client/client.ts';
import { ownText, section, sentenceIn } from '../../language.ts';
import type { Report } from '../../report.ts';
import { table } from '../../table.ts';
import { describeLanguage, describeVariable } from './result.ts';

/** The reply without the members that are not shown. */
type Explanation = Omit<Reply<'explainPush'>, 'forecast' | 'limits' | 'pace' | 'warning' | 'warnings'>;

/** Describes what a push would do. The document is the unchanged reply. */
export function describeExplanation(reply: Explanation): Report {
  const { starts = [], languages = [], variables = [], quietHours, texts, estimatedSeconds: seconds } = reply;
  const shares = Object.entries(reply.connectors);
  const rows = shares.map(([connector, { devices, profiles, payloadBytes }]) => [
    displayName(connector),
    devices,
    payloadBytes ?? '-',
    Object.entries(profiles)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  ]);
  const problems = shares.flatMap(([id, share]) =>
    share.problems ? [`${displayName(id)}: ${share.problems.map(sentenceIn).join('; ')}`] : [],
  );
  const pace = sentenceIn(texts.pace);
  const text = [
    ownText('pushTo', { devices: reply.devices }),
    ...(rows.length > 0 ? ['', table(['connector', 'devices', 'bytes', 'profiles'], rows)] : []),
    ...section('starts', starts.map(describeStart)),
    ...section(
      'quietHours',
      (quietHours?.ends ?? []).map(({ at, devices }) => `${at}  ${devices}`),
    ),
    ...section('languages', languages.map(describeLanguage)),
    ...section('variables', variables.map(describeVariable)),
    ...section('warnings', (texts.warnings ?? []).map(sentenceIn)),
    ...section('problems', problems),
    ...section('limits', texts.limits.map(sentenceIn)),
    '',
    seconds === null ? pace : ownText('takesAbout', { seconds, pace }),
    ...section('database', [
      ...reply.plan,
      ...(texts.warning === null ? [] : [ownText('warning', { warning: sentenceIn(texts.warning) })]),
    ]),
    '',
    ownText('explained', { digest: reply.digest }),
  ].join('\n');
  return { document: reply, text };
}

const describeStart = ({
  at,
  devices,
  isLate,
}: NonNullable<Reply<'explainPush'>['starts']>[number]): string =>
  `${at}  ${devices}${isLate ? ' (too late)' : ''}`;
