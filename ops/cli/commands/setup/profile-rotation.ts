import type { Reply } from '../../../client/client.ts';
import { argument, flag, rest, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import { say, words } from '../../language.ts';
import type { Report } from '../../report.ts';
import { row } from '../../row.ts';
import { connect } from '../../service.ts';
import { table } from '../../table.ts';
import { credentialOptions, gateway, profilePath, readCredentials } from './profile-arguments.ts';

const stageOptions = {
  appId: argument('<appId>'),
  connector: gateway(),
  files: rest('<files...>'),
  ...credentialOptions(),
  hold: flag('--hold', 'only stage and check: no push tries it until it is promoted'),
};

/** `carillon profile stage|promote|rollback|status`: rotation of credentials by a canary. */
export const rotationCommands = [
  command(
    'profile stage',
    'stage a second version of the credentials (files as for put): checked, tried on 1 % of the batches, then promoted or rolled back by itself',
    {
      example: 'profile stage wHx47FrDSrY1GzAzkZtSHtOx fcm service-account.json',
      takes: stageOptions,
      run: stage,
    },
  ),
  row('profile promote', 'make the checked candidate the current version now', {
    example: 'profile promote wHx47FrDSrY1GzAzkZtSHtOx fcm',
    operation: 'promoteProfile',
    path: profilePath(),
    show: describe,
  }),
  row('profile rollback', 'drop the candidate, or bring the version before the last promotion back', {
    example: 'profile rollback wHx47FrDSrY1GzAzkZtSHtOx fcm',
    operation: 'rollBackProfile',
    path: profilePath(),
    show: describe,
  }),
  row('profile status', 'the last rotation of the credentials', {
    example: 'profile status wHx47FrDSrY1GzAzkZtSHtOx fcm',
    operation: 'getProfileRotation',
    path: profilePath(),
    show: describe,
  }),
];

async function stage(values: Values<typeof stageOptions>): Promise<Report> {
  const { appId, connector, files, name, hold, ...options } = values;
  const body = await readCredentials(connector, files, options);
  const { call } = await connect();
  const path = { appId, connector, name };
  const reply = await call('stageProfile', { path, query: { hold: hold ? '1' : '0' }, body });
  return { document: reply, text: describe(reply), isBad: reply.state === 'staged' };
}

function describe({ state, changedAt, reason, detail, ...counts }: Reply<'getProfileRotation'>): string {
  const rows = [
    [say('state'), say('{state} since {time}', { state, time: changedAt })],
    ...(reason === null ? [] : [[say('reason'), reason]]),
    ...(detail === null ? [] : [[say('detail'), detail]]),
    [say('batches'), say('{n} of {all}', { n: counts.batches, all: counts.batchesSeen })],
    [say('recipients'), say('{accepted} of {asked} accepted, {enough} are enough', counts)],
    [say('refused'), String(counts.refused)],
    [say('worse'), String(counts.worse)],
  ];
  return table(words('member', 'value'), rows);
}
