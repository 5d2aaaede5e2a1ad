import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { ownText, section, sentenceIn } from '../../language.ts';
import { type Report, table } from '../../report.ts';
import { describeLanguage, describeVariable, variableCounts } from './result.ts';

const sentence = z.looseObject({ text: z.string(), zh: z.string() });

/** Reply of `POST …/push/explain`. */
const explanation = z.looseObject({
  devices: z.number(),
  connectors: z.record(
    z.string(),
    z.looseObject({
      devices: z.number(),
      profiles: z.record(z.string(), z.number()),
      payloadBytes: z.number().nullable(),
      problems: z.array(sentence).default([]),
    }),
  ),
  estimatedSeconds: z.number().nullable(),
  starts: z.array(z.object({ at: z.string(), devices: z.number(), isLate: z.boolean() })).default([]),
  languages: z
    .array(z.object({ language: z.string().nullable(), devices: z.number(), fallback: z.number() }))
    .default([]),
  quietHours: z
    .object({ ends: z.array(z.object({ at: z.string(), devices: z.number() })) })
    .default({ ends: [] }),
  variables: variableCounts,
  plan: z.array(z.string()),
  texts: z.looseObject({
    limits: z.array(sentence),
    pace: sentence,
    warning: sentence.nullable(),
    warnings: z.array(sentence).default([]),
  }),
  digest: z.string().optional(),
});

/** Describes what a push would do. The document is the unchanged reply. */
export function describeExplanation(reply: unknown): Report {
  const parsed = explanation.parse(reply);
  const shares = Object.entries(parsed.connectors);
  const rows = shares.map(([connector, { devices, profiles, payloadBytes }]) => [
    displayName(connector),
    devices,
    payloadBytes ?? '-',
    Object.entries(profiles)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  ]);
  const problems = shares.flatMap(([id, share]) =>
    share.problems.length === 0 ? [] : [`${displayName(id)}: ${share.problems.map(sentenceIn).join('; ')}`],
  );
  const { estimatedSeconds: seconds, texts } = parsed;
  const pace = sentenceIn(texts.pace);
  const text = [
    ownText('pushTo', { devices: parsed.devices }),
    ...(rows.length > 0 ? ['', table(['connector', 'devices', 'bytes', 'profiles'], rows)] : []),
    ...section('starts', parsed.starts.map(describeStart)),
    ...section(
      'quietHours',
      parsed.quietHours.ends.map(({ at, devices }) => `${at}  ${devices}`),
    ),
    ...section('languages', parsed.languages.map(describeLanguage)),
    ...section('variables', parsed.variables.map(describeVariable)),
    ...section('warnings', texts.warnings.map(sentenceIn)),
    ...section('problems', problems),
    ...section('limits', texts.limits.map(sentenceIn)),
    '',
    seconds === null ? pace : ownText('takesAbout', { seconds, pace }),
    ...section('database', [
      ...parsed.plan,
      ...(texts.warning === null ? [] : [ownText('warning', { warning: sentenceIn(texts.warning) })]),
    ]),
    ...(parsed.digest === undefined ? [] : ['', ownText('explained', { digest: parsed.digest })]),
  ].join('\n');
  return { document: reply, text };
}

const describeStart = ({ at, devices, isLate }: z.infer<typeof explanation>['starts'][number]): string =>
  `${at}  ${devices}${isLate ? ' (too late)' : ''}`;
