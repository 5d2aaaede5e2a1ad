import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import { textIn } from '../../../../shared/domain/texts/catalogue.ts';
import type { Reply } from '../../../client/client.ts';
import { argument, optional, rest, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import { type English, gatewayName, language, reasonIn, say, words } from '../../language.ts';
import { CommandFailure, type Report, type Shell } from '../../report.ts';
import { type Given, row } from '../../row.ts';
import { connect, type ServiceClient } from '../../service.ts';
import { table } from '../../table.ts';
import {
  connectorOf,
  credentialOptions,
  gateway,
  profilePath,
  readCredentials,
} from './profile-arguments.ts';
import { rotationCommands } from './profile-rotation.ts';

const putOptions = {
  appId: argument('<appId>'),
  connector: gateway(),
  files: rest('<files...>'),
  ...credentialOptions(),
};

/** `carillon profile …`: credentials of push gateways, which can be written but not read. */
export const profileCommands = [
  // `profile help` explains credentials; the list of commands stays under --help.
  ({ program }: Shell) =>
    void program
      .command('profile')
      .description('credentials of push gateways' satisfies English)
      .helpCommand(false),
  command(
    'profile put',
    'store credentials: a JSON file, - for standard input, or files as the vendor hands them out (.p8, .p12, PEM, service account)',
    {
      example: 'profile put wHx47FrDSrY1GzAzkZtSHtOx apns AuthKey_2X9R4HXF34.p8 --team A1B2C3D4E5',
      takes: putOptions,
      run: store,
    },
  ),
  ...rotationCommands,
  command('profile help', 'describe the credentials of a gateway and where to find them in its console', {
    example: 'profile help fcm',
    takes: { connector: optional('[connector]', 'id or name of the gateway') },
    run: ({ connector }) => help(connector),
  }),
  row('profile list', 'profiles of an application', {
    example: 'profile list wHx47FrDSrY1GzAzkZtSHtOx',
    operation: 'listProfiles',
    path: { appId: argument('<appId>') },
    columns: {
      connector: 'connector',
      gateway: ({ connector }) => gatewayName(connector),
      name: 'name',
      updated: 'updatedAt',
      created: 'createdAt',
    },
    none: 'There are no profiles.',
  }),
  row('profile show', 'ids, settings, fingerprints of secrets, and problems of a profile', {
    example: 'profile show wHx47FrDSrY1GzAzkZtSHtOx apns',
    operation: 'getProfile',
    path: profilePath(),
    show: describe,
  }),
  row('profile check', 'ask the gateway for an access token or a connection, without sending', {
    example: 'profile check wHx47FrDSrY1GzAzkZtSHtOx apns',
    operation: 'checkProfile',
    path: profilePath(),
    show: describeCheck,
    isBad: ({ ok }) => !ok,
  }),
  row('profile delete', 'delete a profile', {
    example: 'profile delete wHx47FrDSrY1GzAzkZtSHtOx apns --name Beta',
    operation: 'deleteProfile',
    path: profilePath(),
    show: (_reply, { connector = '', name }) =>
      say('Profile {connector}/{name} ({gateway}) is deleted.', {
        connector,
        name,
        gateway: gatewayName(connector),
      }),
  }),
];

interface ProfilePath {
  appId: string;
  connector: ConnectorId;
  name: string;
}

async function store({
  appId,
  connector,
  files,
  name,
  ...options
}: Values<typeof putOptions>): Promise<Report> {
  const credentials = await readCredentials(connector, files, options);
  const service = await connect();
  const path = { appId, connector, name };
  const document = await service.call('putProfile', { path, body: credentials });
  const lines = [
    say('Profile {connector}/{name} ({gateway}) is stored.', {
      connector,
      name,
      gateway: gatewayName(connector),
    }),
    ...(await remarksOn(service, path)),
  ];
  return { document, text: lines.join('\n') };
}

/**
 * Returns what certificate was chosen and the problems of a stored profile; nothing where they
 * cannot be read, since it is stored anyway.
 */
async function remarksOn({ call }: ServiceClient, path: ProfilePath): Promise<string[]> {
  try {
    const { findings, meanings, kind, members, notAfter } = await call('getProfile', { path });
    return [
      ...(kind === 'certificate'
        ? [
            say('The certificate is for {topic}, valid until {time}.', {
              topic: String(members.topic),
              time: notAfter ?? '-',
            }),
          ]
        : []),
      ...findings.map((finding, at) =>
        say('Warning: {warning}', { warning: reasonIn(finding, meanings[at]) }),
      ),
    ];
  } catch (error) {
    if (error instanceof CommandFailure) return [];
    throw error;
  }
}

async function help(name: string | undefined): Promise<Report> {
  const { describeCredentials, describeGateways } = await import('../../credentials/help.ts');
  return name === undefined ? describeGateways() : describeCredentials(connectorOf(name));
}

function describeCheck(
  { sentence, meaning, gave, tookMs }: Reply<'checkProfile'>,
  { connector = '' }: Given,
): string {
  const text = gave
    ? textIn(language(), 'profileCheck', gave, () => gatewayName(connector))
    : reasonIn(sentence, meaning);
  return `${text} (${tookMs} ms)`;
}

function describe(reply: Reply<'getProfile'>): string {
  const { kind, members, secrets, notAfter, devices, findings, meanings } = reply;
  const rows = [
    [say('kind'), kind],
    ...Object.entries(members).map(([member, value]) => [
      member,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
    ...Object.entries(secrets).map(([member, { sha256 }]) => [member, `sha256 ${sha256}`]),
    [say('expires'), notAfter ?? '-'],
    [say('devices'), String(devices)],
    ...findings.map((finding, at) => [say('problem'), reasonIn(finding, meanings[at])]),
  ];
  return table(words('member', 'value'), rows);
}
