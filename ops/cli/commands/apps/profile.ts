import { z } from 'zod';
import { jsonObject } from '../../../../shared/domain/json-schema.ts';
import { brandOf, displayName } from '../../../../shared/domain/labels.ts';
import { textIn } from '../../../../shared/domain/texts/catalogue.ts';
import type { CredentialOptions } from '../../credentials/credentials.ts';
import { language, ownText, reasonIn } from '../../language.ts';
import { CommandFailure, type Report, type Shell, table } from '../../report.ts';
import { connect, part } from '../../service.ts';
import { addCredentialOptions, connectorOf, profilePath } from './profile-arguments.ts';
import { addRotationCommands } from './profile-rotation.ts';

const entries = z.object({
  results: z.array(
    z.looseObject({
      connector: z.string(),
      name: z.string(),
      createdAt: z.string(),
      updatedAt: z.string(),
    }),
  ),
});

/** Adds `carillon profile …`: credentials of push gateways, which can be written but not read. */
export function addProfileCommands({ program, act }: Shell): void {
  // `profile help` explains credentials; the list of commands stays under --help.
  const profile = program.command('profile').description('credentials of push gateways').helpCommand(false);
  const put = profile
    .command('put <appId> <connector> <files...>')
    .description(
      'store credentials: a JSON file, - for standard input, or files as the vendor hands them out (.p8, .p12, PEM, service account)',
    );
  addCredentialOptions(put).action(act(store));
  addRotationCommands(profile, act);
  profile
    .command('help [connector]')
    .description('describe the credentials of a gateway and where to find them in its console')
    .action(act(help));
  profile.command('list <appId>').description('profiles of an application').action(act(list));
  profile
    .command('show <appId> <connector>')
    .description('ids, settings, fingerprints of secrets, and problems of a profile')
    .option('--name <name>', 'name of the profile', '_default')
    .action(act(show));
  profile
    .command('check <appId> <connector>')
    .description('ask the gateway for an access token or a connection, without sending')
    .option('--name <name>', 'name of the profile', '_default')
    .action(act(check));
  profile
    .command('delete <appId> <connector>')
    .description('delete a profile')
    .option('--name <name>', 'name of the profile', '_default')
    .action(act(remove));
}

async function store(
  appId: string,
  gateway: string,
  files: string[],
  { name, ...options }: CredentialOptions & { name: string },
): Promise<Report> {
  // Loads all connectors, which takes longer than the rest of a command.
  const { credentialsFrom } = await import('../../credentials/credentials.ts');
  const connector = connectorOf(gateway);
  const credentials = await credentialsFrom(connector, files, options);
  const service = await connect();
  const path = profilePath(appId, connector, name);
  const document = await service.admin('PUT', path, credentials);
  const lines = [
    `Profile ${connector}/${name} (${brandOf(connector)}) is stored.`,
    ...(await remarksOn(service, path)),
  ];
  return { document, text: lines.join('\n') };
}

/**
 * Returns what certificate was chosen and the problems of a stored profile; nothing where they
 * cannot be read, since it is stored anyway.
 */
async function remarksOn(service: Awaited<ReturnType<typeof connect>>, path: string): Promise<string[]> {
  try {
    const { findings, meanings, kind, members, notAfter } = detail.parse(await service.admin('GET', path));
    return [
      ...(kind === 'certificate'
        ? [`The certificate is for ${members.topic}, valid until ${notAfter}.`]
        : []),
      ...findings.map((finding, at) => ownText('warning', { warning: reasonIn(finding, meanings[at]) })),
    ];
  } catch (error) {
    if (error instanceof CommandFailure) return [];
    throw error;
  }
}

async function help(gateway: string | undefined): Promise<Report> {
  const { describeCredentials, describeGateways } = await import('../../credentials/help.ts');
  return gateway === undefined ? describeGateways() : describeCredentials(connectorOf(gateway));
}

async function list(appId: string): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/apps/${part(appId)}/profiles`);
  const { results } = entries.parse(reply);
  const rows = results.map((one) => [
    one.connector,
    displayName(one.connector),
    one.name,
    one.createdAt,
    one.updatedAt,
  ]);
  const text =
    rows.length > 0
      ? table(['connector', 'gateway', 'name', 'created', 'updated'], rows)
      : 'There are no profiles.';
  return { document: reply, text };
}

const detail = z.looseObject({
  kind: z.string(),
  members: jsonObject,
  secrets: z.record(z.string(), z.object({ sha256: z.string() })),
  notAfter: z.string().nullable(),
  devices: z.number(),
  findings: z.array(z.string()),
  meanings: z.array(z.looseObject({ code: z.string(), zh: z.string() })),
});

async function show(appId: string, gateway: string, { name }: { name: string }): Promise<Report> {
  const path = profilePath(appId, connectorOf(gateway), name);
  const document = await (await connect()).admin('GET', path);
  const { kind, members, secrets, notAfter, devices, findings, meanings } = detail.parse(document);
  const rows = [
    ['kind', kind],
    ...Object.entries(members).map(([member, value]) => [
      member,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
    ...Object.entries(secrets).map(([member, { sha256 }]) => [member, `sha256 ${sha256}`]),
    ['expires', notAfter ?? '-'],
    ['devices', String(devices)],
    ...findings.map((finding, at) => ['problem', reasonIn(finding, meanings[at])]),
  ];
  return { document, text: table(['member', 'value'], rows) };
}

const meaning = z.looseObject({ code: z.string(), zh: z.string() });
const checkReply = z.looseObject({
  ...{ ok: z.boolean(), tookMs: z.number(), sentence: z.string(), meaning: meaning.nullable() },
  gave: z.enum(['token', 'connection']).nullable(),
});

async function check(appId: string, gateway: string, { name }: { name: string }): Promise<Report> {
  const connector = connectorOf(gateway);
  const document = await (await connect()).admin('POST', `${profilePath(appId, connector, name)}/check`);
  const { ok, tookMs, sentence, meaning, gave } = checkReply.parse(document);
  const text = gave
    ? textIn(language(), 'profileCheck', gave, () => displayName(connector))
    : reasonIn(sentence, meaning);
  return { document, text: `${text} (${tookMs} ms)`, isBad: !ok };
}

async function remove(appId: string, gateway: string, { name }: { name: string }): Promise<Report> {
  const connector = connectorOf(gateway);
  const document = await (await connect()).admin('DELETE', profilePath(appId, connector, name));
  return { document, text: `Profile ${connector}/${name} (${brandOf(connector)}) is deleted.` };
}
