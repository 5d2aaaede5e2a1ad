import type { Command } from 'commander';
import { z } from 'zod';
import type { CredentialOptions } from '../../credentials/credentials.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { connect } from '../../service.ts';
import { addCredentialOptions, connectorOf, profilePath } from './profile-arguments.ts';

const rotation = z.looseObject({
  state: z.string(),
  changedAt: z.string(),
  reason: z.string().nullable(),
  detail: z.string().nullable(),
  batches: z.number(),
  batchesSeen: z.number(),
  asked: z.number(),
  accepted: z.number(),
  refused: z.number(),
  worse: z.number(),
  enough: z.number(),
});

interface Named {
  name: string;
}

/** Adds `carillon profile stage|promote|rollback|status`: rotation of credentials by a canary. */
export function addRotationCommands(profile: Command, act: Shell['act']): void {
  const stage = profile
    .command('stage <appId> <connector> <files...>')
    .description(
      'stage a second version of the credentials (files as for put): checked, tried on 1 % of the batches, then promoted or rolled back by itself',
    );
  addCredentialOptions(stage)
    .option('--hold', 'only stage and check: no push tries it until it is promoted')
    .action(act(stageFiles));
  const verbs = {
    promote: 'make the checked candidate the current version now',
    rollback: 'drop the candidate, or bring the version before the last promotion back',
  } as const;
  for (const [verb, description] of Object.entries(verbs))
    profile
      .command(`${verb} <appId> <connector>`)
      .description(description)
      .option('--name <name>', 'name of the profile', '_default')
      .action(
        act((appId: string, gateway: string, { name }: Named) => ask('POST', appId, gateway, { name, verb })),
      );
  profile
    .command('status <appId> <connector>')
    .description('the last rotation of the credentials')
    .option('--name <name>', 'name of the profile', '_default')
    .action(act((appId: string, gateway: string, { name }: Named) => ask('GET', appId, gateway, { name })));
}

async function stageFiles(
  appId: string,
  gateway: string,
  files: string[],
  { name, hold, ...options }: CredentialOptions & Named & { hold?: boolean },
): Promise<Report> {
  const { credentialsFrom } = await import('../../credentials/credentials.ts');
  const connector = connectorOf(gateway);
  const credentials = await credentialsFrom(connector, files, options);
  const path = `${profilePath(appId, connector, name)}/candidate?hold=${hold === true ? 1 : 0}`;
  const document = await (await connect()).admin('PUT', path, credentials);
  return { ...reportOf(document), isBad: rotation.parse(document).state === 'staged' };
}

async function ask(
  method: string,
  appId: string,
  gateway: string,
  { name, verb }: Named & { verb?: string },
): Promise<Report> {
  const path = `${profilePath(appId, connectorOf(gateway), name)}/candidate`;
  const document = await (await connect()).admin(method, verb === undefined ? path : `${path}/${verb}`);
  return reportOf(document);
}

function reportOf(document: unknown): Report {
  const { state, changedAt, reason, detail, ...counts } = rotation.parse(document);
  const rows = [
    ['state', `${state} since ${changedAt}`],
    ...(reason === null ? [] : [['reason', reason]]),
    ...(detail === null ? [] : [['detail', detail]]),
    ['batches', `${counts.batches} of ${counts.batchesSeen}`],
    ['recipients', `${counts.accepted} of ${counts.asked} accepted, ${counts.enough} are enough`],
    ['refused', String(counts.refused)],
    ['worse', String(counts.worse)],
  ];
  return { document, text: table(['member', 'value'], rows) };
}
