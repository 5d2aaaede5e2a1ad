import { isIP } from 'node:net';
import { z } from 'zod';
import { type Finding, found } from '../../../api/services/operator/doctor/checks.ts';

const timeoutMs = 5000;
/**
 * Invented addresses (RFC 5737) for X-Forwarded-For. There are at least as many as the maximum
 * number of trusted proxies.
 */
const invented = Array.from({ length: 10 }, (_, i) => `203.0.113.${i + 1}`);
const addressReply = z.object({ address: z.string() });

/** Input of the checks of the public address. */
export interface PublicAddress {
  /** PUBLIC_URL, or the default address of the api. */
  url: string;
  trustedProxies: number;
  adminToken: string | undefined;
}

/**
 * Checks that devices can use PUBLIC_URL, and that TRUSTED_PROXIES matches the proxies in front of
 * the api.
 */
export async function checkAddress(address: PublicAddress): Promise<Finding[]> {
  return [checkPublicUrl(address.url), ...(await checkProxies(address))];
}

const isPrivate = (host: string): boolean =>
  host === 'localhost' ||
  host === '[::1]' ||
  (isIP(host) === 4 && /^(127|10|192\.168|172\.(1[6-9]|2\d|3[01])|169\.254)\./.test(host));

function checkPublicUrl(url: string): Finding {
  const { protocol, hostname } = new URL(url);
  const name = 'public url';
  return protocol === 'https:' || isPrivate(hostname)
    ? found({ name, status: 'ok', code: 'publicUrlFine', params: { url } })
    : found({ name, status: 'warn', code: 'publicUrlOpen', params: { url } });
}

/**
 * Calls the api through PUBLIC_URL with invented addresses in X-Forwarded-For. The api returns the
 * address that it considers the caller's.
 */
async function checkProxies({
  url,
  trustedProxies,
  adminToken,
}: PublicAddress): Promise<Finding[]> {
  const name = 'proxies';
  if (trustedProxies === 0 && url.startsWith('https:'))
    return [found({ name, status: 'warn', code: 'proxiesUnset' })];
  const address = adminToken === undefined ? undefined : await askAddress(url, adminToken);
  // Other checks report an api that does not respond or refuses the token.
  if (address === undefined) return [];
  const at = invented.indexOf(address);
  return [
    at < 0
      ? found({ name, status: 'ok', code: 'proxiesFine', params: { trusted: trustedProxies } })
      : found({
          name,
          status: 'fail',
          code: 'proxiesTooMany',
          params: { n: invented.length - at },
        }),
  ];
}

async function askAddress(url: string, adminToken: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/console/api/meta`, {
      headers: { Authorization: `Bearer ${adminToken}`, 'X-Forwarded-For': invented.join(', ') },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return addressReply.safeParse(await response.json()).data?.address;
  } catch {
    return undefined;
  }
}
