import type { Reply } from '../../../client/client.ts';
import { flag, json, list, optional, whole } from '../../arguments.ts';
import { gatewayName, say, words } from '../../language.ts';
import { row } from '../../row.ts';
import { table } from '../../table.ts';

/**
 * `carillon audience`, `fields` and `channels`: which devices a push would go to, and what they
 * have.
 */
export const audienceCommands = [
  row('audience', 'count the devices that a push would go to, by connector', {
    example: `audience --where '{"deviceType":"ios"}' --clauses`,
    operation: 'countAudience',
    body: {
      where: json('--where <json or file>', 'conditions on installations; without it all count'),
      channels: list('--channels <names...>', 'only subscribers of these channels'),
      clauses: flag('--clauses', 'also count without each part of the condition'),
      sample: whole('--sample <n>', 'devices to show, at most 20'),
    },
    show: describe,
  }),
  row('fields', 'list members of the newest devices', {
    example: 'fields device',
    operation: 'suggestFields',
    query: { prefix: optional('[prefix]') },
    show: asLines,
  }),
  row('channels', 'list channels of the newest devices', {
    example: 'channels ne',
    operation: 'suggestChannels',
    query: { prefix: optional('[prefix]') },
    show: asLines,
  }),
];

function asLines({ results }: { results: unknown[] }): string {
  return results.map((one) => JSON.stringify(one)).join('\n');
}

function describe(found: Reply<'countAudience'>): string {
  const { isLeast, devices, connectors, problems, clauses = [], sample, warning } = found;
  const rows = Object.entries(connectors).map(([id, n]) => [gatewayName(id), n]);
  return [
    isLeast ? say('At least {devices} devices.', { devices }) : say('{devices} devices.', { devices }),
    ...(rows.length > 0 ? ['', table(words('connector', 'devices'), rows)] : []),
    ...Object.entries(problems).map(([problem, n]) => `${problem}: ${n}`),
    ...clauses.map(({ text, without }) =>
      say('without {clause}: {n}', { clause: text, n: without ?? say('not counted in time') }),
    ),
    ...sample.map((device) => JSON.stringify(device)),
    ...(warning === undefined ? [] : [say('Warning: {warning}', { warning })]),
  ].join('\n');
}
