import { addressesIn } from '../../../shared/domain/addresses.ts';
import { hasRole, type OperatorRole } from '../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { isRefusedUrl } from '../../../shared/http/outbound-addresses.ts';
import type { ApiDeps } from '../deps.ts';

/** Hosts of the token call of Google's service accounts, which every such file names. */
const googleHost = /^https:\/\/([a-z0-9-]+\.)*(googleapis\.com|google\.com)$/;

/**
 * Checks the URLs of credentials, as they would be stored, that the service would connect to.
 * Throws 400 for a private address that CARILLON_PRIVATE_HOSTS does not list, 403 where a caller
 * below owner changes one: it could send the requests of the service, with the credentials in them,
 * to any server.
 */
export async function requireMaySetAddresses(
  { appCache }: Pick<ApiDeps, 'appCache'>,
  { appId, connector, name }: { appId: string; connector: string; name: string },
  { credentials, role }: { credentials: JsonObject; role: OperatorRole },
): Promise<void> {
  const addresses = addressesIn(credentials);
  requirePublicAddresses(addresses);
  if (hasRole(role, 'owner') || addresses.size === 0) return;
  const profiles = await appCache.profiles(appId);
  const stored = profiles.find(
    (one) => one.connector === connector && one.name === name,
  )?.credentials;
  const known = addressesIn(isJsonObject(stored) ? stored : {});
  for (const [member, url] of addresses)
    if (
      known.get(member) !== url &&
      !(member.endsWith('token_uri') && googleHost.test(new URL(url).origin))
    )
      throw refuse('forbidden', detail('ownerOption', { option: member }));
}

/** Throws 400 for a URL with a private address that CARILLON_PRIVATE_HOSTS does not list. */
export function requirePublicAddresses(addresses: ReadonlyMap<string, string>): void {
  for (const [member, url] of addresses)
    if (isRefusedUrl(url)) throw refuse('invalidParameter', detail('privateAddress', { member }));
}
