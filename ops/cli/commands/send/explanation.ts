import type { Reply } from '../../../client/client.ts';
import { gatewayName, say, section, sentenceIn, warningIn, words } from '../../language.ts';
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
    gatewayName(connector),
    devices,
    payloadBytes ?? '-',
    Object.entries(profiles)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  ]);
  const problems = shares.flatMap(([id, share]) =>
    share.problems ? [`${gatewayName(id)}: ${share.problems.map(sentenceIn).join('; ')}`] : [],
  );
  const pace = sentenceIn(texts.pace);
  const text = [
    say('This push would go to {devices} devices. Nothing was sent.', { devices: reply.devices }),
    ...(rows.length > 0 ? ['', table(words('connector', 'devices', 'bytes', 'profiles'), rows)] : []),
    ...section('Starts:', starts.map(describeStart)),
    ...section(
      'Quiet hours end:',
      (quietHours?.ends ?? []).map(({ at, devices }) => `${at}  ${devices}`),
    ),
    ...section('Languages:', languages.map(describeLanguage)),
    ...section('Variables:', variables.map(describeVariable)),
    ...section('Warnings:', (texts.warnings ?? []).map(warningIn)),
    ...section('Problems:', problems),
    ...section('Limits:', texts.limits.map(sentenceIn)),
    '',
    seconds === null ? pace : say('It takes about {seconds} s: {pace}', { seconds, pace }),
    ...section('Database:', [
      ...reply.plan,
      ...(texts.warning === null ? [] : [say('Warning: {warning}', { warning: sentenceIn(texts.warning) })]),
    ]),
    '',
    say('To send to this audience only: --explained {digest}', { digest: reply.digest }),
  ].join('\n');
  return { document: reply, text };
}

const describeStart = ({
  at,
  devices,
  isLate,
}: NonNullable<Reply<'explainPush'>['starts']>[number]): string =>
  `${at}  ${devices}${isLate ? ` ${say('(too late)')}` : ''}`;
