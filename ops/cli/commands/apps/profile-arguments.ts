import type { Command } from 'commander';
import {
  brandOf,
  type ConnectorId,
  findConnector,
  profileConnectorIds,
} from '../../../../shared/domain/labels.ts';
import { UsageError } from '../../report.ts';
import { part } from '../../service.ts';

/** Returns the path of a profile in the admin API. */
export const profilePath = (appId: string, connector: ConnectorId, name: string) =>
  `/apps/${part(appId)}/profiles/${connector}/${part(name)}`;

/** Adds the options of a command that takes files with credentials. */
export const addCredentialOptions = (command: Command): Command =>
  command
    .option('--name <name>', 'name of the profile', '_default')
    .option('--team <id>', 'Apple: Team ID of a .p8 key')
    .option('--key <id>', 'Apple: Key ID, if the name of the .p8 file does not contain it')
    .option('--topic <bundleIds...>', 'Apple: bundle ids that the key or certificate serves')
    .option('--environment <name>', 'Apple: prod or dev, if the profile serves only one of them')
    .option('--password-file <file>', 'password of a .p12 file; without it there is a prompt')
    .option(
      '--secret-file <file>',
      'Huawei: app secret for agconnect-services.json; without it there is a prompt',
    );

/** Returns the connector with this id or display name. Throws `UsageError`. */
export function connectorOf(name: string): ConnectorId {
  const connector = findConnector(name);
  if (connector && profileConnectorIds.some((id) => id === connector)) return connector;
  const known = profileConnectorIds.map((id) => `${id} (${brandOf(id)})`).join(', ');
  throw new UsageError(`there is no gateway of that name: expected one of ${known}`);
}
