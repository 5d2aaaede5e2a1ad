import { displayName } from '../../../../shared/domain/labels.ts';
import type { Reply } from '../../../client/client.ts';
import { text } from '../../arguments.ts';
import { row } from '../../row.ts';
import { table } from '../../table.ts';

/** `carillon overview`: what is being sent, and what needs the operator. */
export const overviewCommand = row(
  'overview',
  'show what is being sent, what needs the operator, and the use of today',
  {
    operation: 'getOverview',
    query: { app: text('--app <appId>', 'only of this application') },
    show: describe,
  },
);

function describe({ running, scheduled, today, outcomes24h, ...attention }: Reply<'getOverview'>): string {
  const rows = running.map((one) => [one.objectId, one.appId, one.state, one.devices]);
  const cap = today.cap === null ? '' : ` of ${today.cap}`;
  const outcomes = Object.entries(outcomes24h).map(([name, count]) => `${name} ${count}`);
  return [
    rows.length > 0 ? table(['push', 'app', 'state', 'devices'], rows) : 'Nothing is being sent.',
    `scheduled      ${scheduled}`,
    `today (UTC)    ${today.recipients}${cap} recipients, ${today.calls} calls`,
    `last 24 hours  ${outcomes.join(', ') || '-'}`,
    ...attentionOf(attention),
  ].join('\n');
}

type Attention = Pick<Reply<'getOverview'>, 'breakersOpen' | 'profilesExpiring' | 'findings'>;

/** Describes what needs the operator, a line each. */
function attentionOf({ breakersOpen, profilesExpiring, findings }: Attention): string[] {
  const nameOf = ({ appId, connector, profile }: Record<'appId' | 'connector' | 'profile', string>) =>
    `${displayName(connector)} ${profile} of ${appId}`;
  const lines = [
    ...breakersOpen.map((one) => `breaker ${one.state}: ${nameOf(one)}`),
    ...profilesExpiring.map((one) => `expires ${one.expiresAt}: ${nameOf(one)}`),
    ...findings.map((one) => `problem: ${nameOf(one)}: ${one.problems.join(' ')}`),
  ];
  return lines.length > 0 ? lines : ['Gateways answer, credentials are valid.'];
}
