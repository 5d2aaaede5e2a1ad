import { addressesIn } from '../../../shared/domain/addresses.ts';
import { hasRole, type OperatorRole } from '../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { isRefusedUrl } from '../../../shared/http/outbound-addresses.ts';
import type { ApiDeps } from '../deps.ts';

/** Hosts of Google's token endpoint, which every service account file names. */
const googleHost = /^https:\/\/([a-z0-9-]+\.)*(googleapis\.com|google\.com)$/;

/**
 * Checks the URLs in credentials that Carillon would connect to, before they are stored. Throws
 * error 400 if a URL is private and CARILLON_PRIVATE_HOSTS does not list it. Throws error 403 if a
 * caller below the role owner changes a URL, because requests with the credentials would then go to
 * any server.
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
  const storedUrls = addressesIn(isJsonObject(stored) ? stored : {});
  for (const [member, url] of addresses)
    if (
      storedUrls.get(member) !== url &&
      !(member.endsWith('token_uri') && googleHost.test(new URL(url).origin))
    )
      throw refuse('forbidden', detail('ownerOption', { option: member }));
}

/** Throws error 400 if a URL is private and CARILLON_PRIVATE_HOSTS does not list it. */
export function requirePublicAddresses(addresses: ReadonlyMap<string, string>): void {
  for (const [member, url] of addresses)
    if (isRefusedUrl(url)) throw refuse('invalidParameter', detail('privateAddress', { member }));
}
