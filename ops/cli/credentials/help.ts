import { commonMembersIn } from '../../../connectors/contract/guide.ts';
import { guideOf } from '../../../connectors/guides.ts';
import { brandOf, type ConnectorId, profileConnectorIds } from '../../../shared/domain/labels.ts';
import { gatewayName, language, say, words } from '../language.ts';
import type { Report } from '../report.ts';
import { table } from '../table.ts';

/** Lists the gateways that take credentials, with their names on the command line. */
export function describeGateways(): Report {
  const rows = profileConnectorIds.map((id) => [id, brandOf(id)]);
  const text = [
    table(words('connector', 'gateway'), rows),
    '',
    say(
      'carillon profile help <connector> shows the members of its credentials. Both names are taken everywhere.',
    ),
  ].join('\n');
  return { document: { results: rows.map(([connector, gateway]) => ({ connector, gateway })) }, text };
}

/**
 * Describes the credentials of one connector: members, an example, their source at the vendor, the
 * vendor's files.
 */
export function describeCredentials(connector: ConnectorId): Report {
  const guide = guideOf(connector, language());
  if (!guide)
    return {
      document: { connector },
      text: say('{gateway} takes no credentials.', { gateway: gatewayName(connector) }),
    };
  const { source, members, example, files } = guide;
  const lines = (all: Readonly<Record<string, string>>) =>
    table(words('member', 'meaning'), Object.entries(all));
  const text = [
    `${gatewayName(connector)} (${connector})`,
    '',
    source,
    '',
    lines(members),
    '',
    say('Example:'),
    JSON.stringify(example, null, 2),
    ...(files.length > 0
      ? ['', say('Taken as the vendor hands them out:'), ...files.map((line) => `  ${line}`)]
      : []),
    '',
    say('Every gateway also takes:'),
    lines(commonMembersIn(language())),
  ].join('\n');
  return { document: { connector, gateway: brandOf(connector), source, members, example, files }, text };
}
