import { connectorIds, successField } from '../../../../shared/domain/labels.ts';
import type { Reply } from '../../../client/client.ts';
import {
  type English,
  gatewayName,
  say,
  section,
  sentenceIn,
  translated,
  warningIn,
  words,
} from '../../language.ts';
import type { Report } from '../../report.ts';
import { table } from '../../table.ts';

/** Push record with every member that this command shows. */
export type PushRecord = Reply<'getAppPush'> &
  Required<Pick<Reply<'getAppPush'>, 'quietWaits' | 'languages' | 'variables'>>;

/** Fills in what a record leaves out if there is none of it. */
export const recordOf = (record: Reply<'getAppPush'>): PushRecord => ({
  ...record,
  quietWaits: record.quietWaits ?? 0,
  languages: record.languages ?? [],
  variables: record.variables ?? [],
});

/** Adds the warnings of an accepted push to its report, at the top of the text. */
export function withWarnings(report: Report, warnings: string[] = []): Report {
  if (warnings.length === 0) return report;
  const { document, text } = report;
  return {
    ...report,
    document: typeof document === 'object' ? { ...document, warnings } : document,
    text: [...warnings.map((warning) => say('Warning: {warning}', { warning })), text].join('\n'),
  };
}

/**
 * Checks whether recipients without an outcome remain. Any other status than `done` is then an
 * error text.
 */
export const isOpen = ({ status }: PushRecord): boolean => status === 'in-queue' || status === 'scheduled';

/** Returns the number of recipients with an outcome. */
export const settledOf = ({ outcomes }: PushRecord): number =>
  Object.values(outcomes).reduce((sum, count) => sum + count, 0);

const outcomeNames: Readonly<Record<string, English>> = {
  sent: 'handed over',
  invalid_token: 'invalid token',
  failed: 'failed',
  expired: 'expired',
  capped: 'over the daily cap',
  dropped: 'dropped',
};

/** Describes the recipients of one language. */
function describeLanguage(one: PushRecord['languages'][number]): string {
  if (one.language === null) return `data  ${one.devices} ${say('(no translation fits)')}`;
  const close = one.fallback > 0 ? ` ${say('({n} of a close locale)', { n: one.fallback })}` : '';
  return `${one.language}  ${one.devices}${close}`;
}

/** Describes what one variable stands for. */
const describeVariable = ({ name, devices, fallback }: PushRecord['variables'][number]): string =>
  `${name}  ${say('{field} of the field, {fallback} of the default', { field: devices - fallback, fallback })}`;

/** Describes the successes by connector, then the outcomes of all recipients. */
export function describeResult(record: PushRecord): string {
  const byField = new Map(connectorIds.map((connector) => [successField(connector), connector]));
  const rows = [...byField].flatMap(([field, connector]) => {
    const { [field]: count }: Record<string, unknown> = record;
    return typeof count === 'number' ? [[gatewayName(connector), count]] : [];
  });
  const totals = Object.entries(record.outcomes).map(([name, count]) => [
    translated(outcomeNames[name] ?? name),
    count,
  ]);
  return [
    say('Push {objectId}: {status}', { objectId: record.objectId, status: record.status }),
    ...(rows.length > 0 ? ['', table(words('connector', 'successes'), rows)] : []),
    '',
    table(words('recipients', 'count'), [...totals, [say('all'), record.devices]]),
    ...(record.quietWaits > 0
      ? ['', say('For the end of quiet hours waited: {n}', { n: record.quietWaits })]
      : []),
    ...section('Languages:', record.languages.map(describeLanguage)),
    ...section('Variables:', record.variables.map(describeVariable)),
    ...(record.devices === 0 && record.status === 'done'
      ? ['', say('Nothing was sent: no installation meets the conditions.')]
      : []),
    ...(record.errors === '' ? [] : ['', say('Errors: {errors}', { errors: record.errors })]),
  ].join('\n');
}

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
