import { type Clock, sleep } from '../../../../shared/clock.ts';
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
import { ProgressBar, printLine, type Report } from '../../report.ts';
import { table } from '../../table.ts';

/** Push record that contains every member that this command shows. */
type PushRecord = Reply<'getAppPush'> &
  Required<Pick<Reply<'getAppPush'>, 'quietWaits' | 'languages' | 'variables'>>;

/** Adds the members that a record omits when they are empty. */
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
 * True if recipients without an outcome remain. A status other than `in-queue`, `scheduled` and
 * `done` is an error text.
 */
export const isOpen = ({ status }: PushRecord): boolean =>
  status === 'in-queue' || status === 'scheduled';

/** Returns the number of recipients that have an outcome. */
const endedOf = ({ outcomes }: PushRecord): number =>
  Object.values(outcomes).reduce((sum, count) => sum + count, 0);

const outcomeNames: Readonly<Record<string, English>> = {
  sent: 'sent',
  invalid_token: 'invalid token',
  failed: 'failed',
  expired: 'expired',
  capped: 'over the daily cap',
  dropped: 'dropped',
};

/** Describes the recipients of a language. */
function describeLanguage(one: PushRecord['languages'][number]): string {
  if (one.language === null) return `data  ${one.devices} ${say('(no translation fits)')}`;
  const close = one.fallback > 0 ? ` ${say('({n} of a close locale)', { n: one.fallback })}` : '';
  return `${one.language}  ${one.devices}${close}`;
}

/** Describes how many recipients get the field's value and how many get the default. */
const describeVariable = ({ name, devices, fallback }: PushRecord['variables'][number]): string =>
  `${name}  ${say('{field} of the field, {fallback} of the default', { field: devices - fallback, fallback })}`;

/** Describes the successes per connector, then the outcomes of all recipients. */
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

/** Reply without the members that are not shown. */
type Explanation = Omit<
  Reply<'explainPush'>,
  'forecast' | 'limits' | 'pace' | 'warning' | 'warnings'
>;

type Share = NonNullable<Explanation['connectors']['apns']>;

/** Describes the message class at a vendor, its daily limit, and what is missing. */
function describeClass([id, share]: [string, Share]): string[] {
  const { name, dailyLimit, missing } = share.messageClass;
  if (name === null && dailyLimit === null && missing.length === 0) return [];
  const parts = [
    name ?? say('no class'),
    ...(dailyLimit === null ? [] : [say('at most {n} per device and day', { n: dailyLimit })]),
    ...(missing.length === 0 ? [] : [say('missing: {names}', { names: missing.join(', ') })]),
  ];
  return [`${gatewayName(id)}: ${parts.join('; ')}`];
}

const describeNotShown = ([id, share]: [string, Share]): string[] =>
  share.notShown.length > 0 ? [`${gatewayName(id)}: ${share.notShown.join(', ')}`] : [];

/** Describes what a push would do. The report's document is the unchanged reply. */
export function describeExplanation(reply: Explanation): Report {
  const {
    starts = [],
    languages = [],
    variables = [],
    quietHours,
    texts,
    estimatedSeconds: seconds,
  } = reply;
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
    reply.devices === 1
      ? say('This push would go to 1 device. Nothing was sent.')
      : say('This push would go to {devices} devices. Nothing was sent.', {
          devices: reply.devices,
        }),
    ...(rows.length > 0
      ? ['', table(words('connector', 'devices', 'bytes', 'profiles'), rows)]
      : []),
    ...section('Starts:', starts.map(describeStart)),
    ...section(
      'Quiet hours end:',
      (quietHours?.ends ?? []).map(({ at, devices }) => `${at}  ${devices}`),
    ),
    ...section('Languages:', languages.map(describeLanguage)),
    ...section('Variables:', variables.map(describeVariable)),
    ...section('Warnings:', (texts.warnings ?? []).map(warningIn)),
    ...section('Message classes:', shares.flatMap(describeClass)),
    ...section('Not shown:', shares.flatMap(describeNotShown)),
    ...section('Problems:', problems),
    ...section('Limits:', texts.limits.map(sentenceIn)),
    '',
    seconds === null ? pace : say('It takes about {seconds} s: {pace}', { seconds, pace }),
    ...section('Database:', [
      ...reply.plan,
      ...(texts.warning === null
        ? []
        : [say('Warning: {warning}', { warning: sentenceIn(texts.warning) })]),
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

/** Poll interval. It is short at first, because most pushes are quick, and grows to 500 ms. */
const firstPauseMs = 50;
const maxPauseMs = 500;

/** Interval between lines if standard error is not a terminal. */
const lineEveryMs = 3000;

interface WatchOptions {
  /**
   * True to show progress on standard error: a bar in a terminal, otherwise a line every few
   * seconds.
   */
  isShown: boolean;
  clock: Clock;
}

/** Polls the record until the push is done or has failed. Returns the last record. */
export async function watchPush(
  read: () => Promise<PushRecord>,
  { isShown, clock }: WatchOptions,
): Promise<PushRecord> {
  const bar = isShown && process.stderr.isTTY ? new PushBar(clock) : undefined;
  const lines = isShown && !bar ? new ProgressLines(clock) : undefined;
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.5, maxPauseMs)) {
      const record = await read();
      bar?.show(record);
      if (!isOpen(record)) return record;
      lines?.show(record);
      await sleep(pauseMs);
    }
  } finally {
    bar?.stop();
  }
}

/**
 * Shows the progress of a push in lines: one every few seconds, and one immediately for a new hint.
 */
class ProgressLines {
  readonly #clock: Clock;
  #lastAtMs: number;
  #lastHint = '';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastAtMs = clock.monotonicMs();
  }

  show(record: PushRecord): void {
    const nowMs = this.#clock.monotonicMs();
    const hint = hintOf(record);
    const isNew = hint !== '' && hint !== this.#lastHint;
    if (!isNew && nowMs - this.#lastAtMs < lineEveryMs) return;
    this.#lastAtMs = nowMs;
    this.#lastHint = hint;
    const progress = say('{settled} of {devices} done', {
      settled: endedOf(record),
      devices: record.devices,
    });
    printLine([progress, ...(hint === '' ? [] : [hint])].join('; '));
  }
}

/**
 * Returns the hint for an open push: the error of a gateway that does not respond, or that only
 * quiet hours delay the push.
 */
function hintOf(record: PushRecord): string {
  const { devices, errors, quietWaits } = record;
  if (errors !== '') return errors;
  const open = devices - endedOf(record);
  return quietWaits > 0 && open > 0 && open <= quietWaits
    ? say('{n} wait for the end of quiet hours, which the push does without this command too', {
        n: open,
      })
    : '';
}

/**
 * Shows the progress of a push as a bar. The bar appears with the first planned recipients. Its
 * total grows during planning.
 */
class PushBar {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  #bar: ProgressBar | undefined;
  #text = '';

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.monotonicMs();
  }

  show(record: PushRecord): void {
    const { devices } = record;
    if (devices === 0) return;
    const settled = endedOf(record);
    const elapsedMs = Math.max(this.#clock.monotonicMs() - this.#startedAtMs, 1);
    const perSecond = Math.round((settled * 1000) / elapsedMs);
    const hint = hintOf(record);
    const progress = say('{settled} of {devices} | {perSecond} per second', {
      settled,
      devices,
      perSecond,
    });
    this.#text = [progress, ...(hint === '' ? [] : [hint])].join(' | ');
    this.#bar ??= new ProgressBar({
      stream: process.stderr,
      marks: ['█', '░'],
      line: (shown, percentage) => `${shown} ${percentage} % | ${this.#text}`,
    });
    this.#bar.show(settled, devices);
  }

  stop(): void {
    this.#bar?.stop();
  }
}
