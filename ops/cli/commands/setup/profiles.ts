import {
  brandOf,
  type ConnectorId,
  findConnector,
  profileConnectorIds,
} from '../../../../shared/domain/labels.ts';
import { textIn } from '../../../../shared/domain/texts/catalogue.ts';
import { asUnchecked, type Reply, type Unchecked } from '../../../client/client.ts';
import {
  argument,
  flag,
  json,
  list,
  optional,
  parsedArgument,
  rest,
  text,
  type Values,
  withDefault,
} from '../../arguments.ts';
import { command } from '../../command.ts';
import { type English, gatewayName, language, reasonIn, say, words } from '../../language.ts';
import { CommandFailure, type Report, type Shell, UsageError } from '../../report.ts';
import { type Given, row } from '../../row.ts';
import { connect, type ServiceClient } from '../../service.ts';
import { table } from '../../table.ts';

/** Argument for a connector, by its id or display name. */
const gateway = () => parsedArgument('<connector>', 'id or name of the gateway', connectorOf);

/** Option for the name of a profile. */
const profileName = () => withDefault(text('--name <name>', 'name of the profile'), '_default');

/** Arguments that identify a profile. */
const profilePath = () => ({
  appId: argument('<appId>'),
  connector: gateway(),
  name: profileName(),
});

/** Options of a command that reads credentials from files. */
const credentialOptions = () => ({
  name: profileName(),
  team: text('--team <id>', 'Apple: Team ID of a .p8 key'),
  key: text('--key <id>', 'Apple: Key ID, if the name of the .p8 file does not contain it'),
  topic: list('--topic <bundleIds...>', 'Apple: bundle ids that the key or certificate serves'),
  environment: text(
    '--environment <name>',
    'Apple: prod or dev, if the profile serves only one of them',
  ),
  passwordFile: text(
    '--password-file <file>',
    'password of a .p12 file; without it there is a prompt',
  ),
  secretFile: text(
    '--secret-file <file>',
    'Huawei: app secret for agconnect-services.json; without it there is a prompt',
  ),
});
type CredentialOptions = Omit<Values<ReturnType<typeof credentialOptions>>, 'name'>;

/** Reads credentials from files. Throws `CommandFailure`. */
async function readCredentials(
  connector: ConnectorId,
  files: string[],
  options: CredentialOptions,
): Promise<Unchecked> {
  // Loaded here, because it loads all connectors, which takes longer than the rest of the command.
  const { credentialsFrom } = await import('../../credentials/credentials.ts');
  return asUnchecked(await credentialsFrom(connector, files, options));
}

/** Returns the connector with this id or display name. Throws `UsageError`. */
function connectorOf(name: string): ConnectorId {
  const connector = findConnector(name);
  if (connector && profileConnectorIds.some((id) => id === connector)) return connector;
  const known = profileConnectorIds.map((id) => `${id} (${brandOf(id)})`).join(', ');
  throw new UsageError(say('there is no gateway of that name: expected one of {known}', { known }));
}

const stageOptions = {
  appId: argument('<appId>'),
  connector: gateway(),
  files: rest('<files...>'),
  ...credentialOptions(),
  hold: flag('--hold', 'only stage and check: no push tries it until it is promoted'),
};

/** `carillon profile stage|promote|rollback|status`: rotate credentials with a canary. */
const rotationCommands = [
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
    show: describeRotation,
  }),
  row(
    'profile rollback',
    'drop the candidate, or bring the version before the last promotion back',
    {
      example: 'profile rollback wHx47FrDSrY1GzAzkZtSHtOx fcm',
      operation: 'rollBackProfile',
      path: profilePath(),
      show: describeRotation,
    },
  ),
  row('profile status', 'the last rotation of the credentials', {
    example: 'profile status wHx47FrDSrY1GzAzkZtSHtOx fcm',
    operation: 'getProfileRotation',
    path: profilePath(),
    show: describeRotation,
  }),
];

async function stage(values: Values<typeof stageOptions>): Promise<Report> {
  const { appId, connector, files, name, hold, ...options } = values;
  const body = await readCredentials(connector, files, options);
  const { call } = await connect();
  const path = { appId, connector, name };
  const reply = await call('stageProfile', { path, query: { hold: hold ? '1' : '0' }, body });
  return { document: reply, text: describeRotation(reply), isBad: reply.state === 'staged' };
}

function describeRotation({
  state,
  changedAt,
  reason,
  detail,
  ...counts
}: Reply<'getProfileRotation'>): string {
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

const putOptions = {
  appId: argument('<appId>'),
  connector: gateway(),
  files: rest('<files...>'),
  ...credentialOptions(),
  classes: json(
    '--classes <json or file>',
    'members of the vendor by message class: {"order": {"channel_id": "…"}}; without it they stay',
  ),
};

/** `carillon profile …`: credentials of push gateways. They can be written but not read. */
export const profileCommands = [
  // `profile help` explains credentials. The list of subcommands is still available with --help.
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
  command(
    'profile help',
    'describe the credentials of a gateway and where to find them in its console',
    {
      example: 'profile help fcm',
      takes: { connector: optional('[connector]', 'id or name of the gateway') },
      run: ({ connector }) => help(connector),
    },
  ),
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
  classes: messageClasses,
  ...options
}: Values<typeof putOptions>): Promise<Report> {
  const credentials = await readCredentials(connector, files, options);
  const service = await connect();
  const path = { appId, connector, name };
  const body = asUnchecked({
    ...credentials,
    ...(messageClasses === undefined ? {} : { messageClasses }),
  });
  const document = await service.call('putProfile', { path, body });
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
 * Returns the chosen certificate and the problems of a stored profile. Returns nothing if they
 * cannot be read, because the profile is stored anyway.
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
  const { describeCredentials, describeGateways } = await import('../../credentials/files.ts');
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
  const {
    kind,
    members,
    messageClasses = {},
    secrets,
    notAfter,
    devices,
    findings,
    meanings,
    receiptUrl,
  } = reply;
  const rows = [
    [say('kind'), kind],
    ...Object.entries(members).map(([member, value]) => [
      member,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
    ...Object.entries(secrets).map(([member, { sha256 }]) => [member, `sha256 ${sha256}`]),
    ...Object.entries(messageClasses).map(([name, own]) => [
      say('class {name}', { name }),
      JSON.stringify(own),
    ]),
    [say('expires'), notAfter ?? '-'],
    [say('devices'), String(devices)],
    ...(receiptUrl === null ? [] : [[say('receipt address'), receiptUrl]]),
    ...findings.map((finding, at) => [say('problem'), reasonIn(finding, meanings[at])]),
  ];
  return table(words('member', 'value'), rows);
}
