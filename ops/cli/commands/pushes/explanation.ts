import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type Report, table } from '../../report.ts';

/** What `POST …/push/explain` answers. */
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
  pace: z.string(),
  plan: z.array(z.string()),
  warning: z.string().optional(),
  warnings: z.array(z.string()).default([]),
});

/** What a push would do, for people; the document is the reply as it came. */
export function describeExplanation(reply: unknown): Report {
  const told = explanation.parse(reply);
  const shares = Object.entries(told.connectors);
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
  const time = told.estimatedSeconds === null ? '' : `It takes about ${told.estimatedSeconds} s: `;
  const text = [
    `This push would go to ${told.devices} devices. Nothing was sent.`,
    ...(rows.length > 0 ? ['', table(['connector', 'devices', 'bytes', 'profiles'], rows)] : []),
    ...section('Warnings', told.warnings),
    ...section('Problems', problems),
    ...section('Limits', told.limits),
    '',
    `${time}${told.pace}`,
    ...section('Database', [
      ...told.plan,
      ...(told.warning === undefined ? [] : [`Warning: ${told.warning}`]),
    ]),
  ].join('\n');
  return { document: reply, text };
}

const section = (title: string, lines: string[]): string[] =>
  lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
