import {
  brandOf,
  type ConnectorId,
  findConnector,
  profileConnectorIds,
} from '../../../../shared/domain/labels.ts';
import { asUnchecked, type Unchecked } from '../../../client/client.ts';
import { argument, list, parsedArgument, text, type Values, withDefault } from '../../arguments.ts';
import { say } from '../../language.ts';
import { UsageError } from '../../report.ts';

/** The argument with the connector, by its id or its display name. */
export const gateway = () => parsedArgument('<connector>', 'id or name of the gateway', connectorOf);

/** The option with the name of a profile. */
export const profileName = () => withDefault(text('--name <name>', 'name of the profile'), '_default');

/** The arguments that name a profile. */
export const profilePath = () => ({ appId: argument('<appId>'), connector: gateway(), name: profileName() });

/** Options of a command that takes files with credentials. */
export const credentialOptions = () => ({
  name: profileName(),
  team: text('--team <id>', 'Apple: Team ID of a .p8 key'),
  key: text('--key <id>', 'Apple: Key ID, if the name of the .p8 file does not contain it'),
  topic: list('--topic <bundleIds...>', 'Apple: bundle ids that the key or certificate serves'),
  environment: text('--environment <name>', 'Apple: prod or dev, if the profile serves only one of them'),
  passwordFile: text('--password-file <file>', 'password of a .p12 file; without it there is a prompt'),
  secretFile: text(
    '--secret-file <file>',
    'Huawei: app secret for agconnect-services.json; without it there is a prompt',
  ),
});
type CredentialOptions = Omit<Values<ReturnType<typeof credentialOptions>>, 'name'>;

/** Reads credentials from files. Throws `CommandFailure`. */
export async function readCredentials(
  connector: ConnectorId,
  files: string[],
  options: CredentialOptions,
): Promise<Unchecked> {
  // Loads all connectors, which takes longer than the rest of a command.
  const { credentialsFrom } = await import('../../credentials/credentials.ts');
  return asUnchecked(await credentialsFrom(connector, files, options));
}

/** Returns the connector with this id or display name. Throws `UsageError`. */
export function connectorOf(name: string): ConnectorId {
  const connector = findConnector(name);
  if (connector && profileConnectorIds.some((id) => id === connector)) return connector;
  const known = profileConnectorIds.map((id) => `${id} (${brandOf(id)})`).join(', ');
  throw new UsageError(say('there is no gateway of that name: expected one of {known}', { known }));
}
