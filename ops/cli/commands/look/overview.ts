import type { Reply } from '../../../client/client.ts';
import { text } from '../../arguments.ts';
import { gatewayName, reasonIn, say, words } from '../../language.ts';
import { row } from '../../row.ts';
import { padded, table } from '../../table.ts';

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
  const outcomes = Object.entries(outcomes24h).map(([name, count]) => `${name} ${count}`);
  return [
    rows.length > 0 ? table(words('push', 'app', 'state', 'devices'), rows) : say('Nothing is being sent.'),
    `${padded(say('scheduled'), 15)}${scheduled}`,
    `${padded(say('today (UTC)'), 15)}${useOf(today)}`,
    `${padded(say('last 24 hours'), 15)}${outcomes.join(', ') || '-'}`,
    ...attentionOf(attention),
  ].join('\n');
}

const useOf = ({ recipients, cap, calls }: Reply<'getOverview'>['today']): string =>
  cap === null
    ? say('{recipients} recipients, {calls} calls', { recipients, calls })
    : say('{recipients} of {cap} recipients, {calls} calls', { recipients, cap, calls });

type Attention = Pick<Reply<'getOverview'>, 'breakersOpen' | 'profilesExpiring' | 'findings'>;

/** Describes what needs the operator, a line each. */
function attentionOf({ breakersOpen, profilesExpiring, findings }: Attention): string[] {
  const nameOf = ({ appId, connector, profile }: Record<'appId' | 'connector' | 'profile', string>) =>
    say('{gateway} {profile} of {appId}', { gateway: gatewayName(connector), profile, appId });
  const lines = [
    ...breakersOpen.map((one) =>
      say('breaker {state}: {profile}', { state: one.state, profile: nameOf(one) }),
    ),
    ...profilesExpiring.map((one) =>
      say('expires {at}: {profile}', { at: one.expiresAt, profile: nameOf(one) }),
    ),
    ...findings.map((one) =>
      say('problem: {profile}: {problems}', {
        profile: nameOf(one),
        problems: one.problems.map((problem, at) => reasonIn(problem, one.meanings[at])).join(' '),
      }),
    ),
  ];
  return lines.length > 0 ? lines : [say('Gateways answer, credentials are valid.')];
}
