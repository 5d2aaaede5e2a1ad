import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type Report, table } from '../../report.ts';
import { describeLanguage, describeVariable, variableCounts } from './result.ts';

/** Reply of `POST …/push/explain`. */
const explanation = z.looseObject({
  devices: z.number(),
  connectors: z.record(
    z.string(),
    z.looseObject({
      devices: z.number(),
      profiles: z.record(z.string(), z.number()),
      payloadBytes: z.number().nullable(),
      problem: z.string().optional(),
    }),
  ),
  limits: z.array(z.string()),
  estimatedSeconds: z.number().nullable(),
  starts: z.array(z.object({ at: z.string(), devices: z.number(), isLate: z.boolean() })).default([]),
  languages: z
    .array(z.object({ language: z.string().nullable(), devices: z.number(), fallback: z.number() }))
    .default([]),
  quietHours: z
    .object({ ends: z.array(z.object({ at: z.string(), devices: z.number() })) })
    .default({ ends: [] }),
  variables: variableCounts,
  pace: z.string(),
  plan: z.array(z.string()),
  warning: z.string().optional(),
  warnings: z.array(z.string()).default([]),
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
  const problems = shares.flatMap(([id, { problem }]) =>
    problem === undefined ? [] : [`${displayName(id)}: ${problem}`],
  );
  const time = parsed.estimatedSeconds === null ? '' : `It takes about ${parsed.estimatedSeconds} s: `;
  const text = [
    `This push would go to ${parsed.devices} devices. Nothing was sent.`,
    ...(rows.length > 0 ? ['', table(['connector', 'devices', 'bytes', 'profiles'], rows)] : []),
    ...section('Starts', parsed.starts.map(describeStart)),
    ...section(
      'Quiet hours end',
      parsed.quietHours.ends.map(({ at, devices }) => `${at}  ${devices}`),
    ),
    ...section('Languages', parsed.languages.map(describeLanguage)),
    ...section('Variables', parsed.variables.map(describeVariable)),
    ...section('Warnings', parsed.warnings),
    ...section('Problems', problems),
    ...section('Limits', parsed.limits),
    '',
    `${time}${parsed.pace}`,
    ...section('Database', [
      ...parsed.plan,
      ...(parsed.warning === undefined ? [] : [`Warning: ${parsed.warning}`]),
    ]),
    ...(parsed.digest === undefined
      ? []
      : ['', `To send to this audience only: --explained ${parsed.digest}`]),
  ].join('\n');
  return { document: reply, text };
}

const describeStart = ({ at, devices, isLate }: z.infer<typeof explanation>['starts'][number]): string =>
  `${at}  ${devices}${isLate ? ' (too late)' : ''}`;

const section = (title: string, lines: string[]): string[] =>
  lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
