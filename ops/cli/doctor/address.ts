import { isIP } from 'node:net';
import { z } from 'zod';
import { type Finding, fail, ok, warn } from '../../../api/services/operator/doctor/finding.ts';

const timeoutMs = 5000;
/** Invented addresses of a call (RFC 5737): as many as there could be trusted proxies. */
const invented = Array.from({ length: 10 }, (_, i) => `203.0.113.${i + 1}`);
const seen = z.object({ address: z.string() });

/** What the checks of the public address need. */
export interface PublicAddress {
  /** PUBLIC_URL, or where the api is looked for without it. */
  url: string;
  trustedProxies: number;
  adminToken: string | undefined;
}

/** Checks that PUBLIC_URL is fit for devices, and that TRUSTED_PROXIES fits to the proxies in front of the api. */
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
  if (protocol === 'https:' || isPrivate(hostname)) return ok(name, url);
  const advice =
    'Put a proxy with a certificate in front and set PUBLIC_URL to its https address: keys and sessions are in every call.';
  return warn(name, `${url} is not encrypted`, advice);
}

/** Asks the api through PUBLIC_URL from which address the call comes, with invented addresses in X-Forwarded-For. */
async function checkProxies({ url, trustedProxies, adminToken }: PublicAddress): Promise<Finding[]> {
  const name = 'proxies';
  if (trustedProxies === 0 && url.startsWith('https:')) {
    const advice = 'Set TRUSTED_PROXIES to the number of proxies in front of the api.';
    return [
      warn(
        name,
        'TRUSTED_PROXIES is not set: all callers have the address of the proxy and share its limits',
        advice,
      ),
    ];
  }
  const address = adminToken === undefined ? undefined : await askAddress(url, adminToken);
  // Other checks report an api that does not answer, or refuses the token.
  if (address === undefined) return [];
  const at = invented.indexOf(address);
  if (at < 0) return [ok(name, `callers cannot choose their address (TRUSTED_PROXIES is ${trustedProxies})`)];
  const advice = `Lower TRUSTED_PROXIES of the api by ${invented.length - at}: callers evade every limit by their address.`;
  return [fail(name, 'the api believes an invented address in X-Forwarded-For', advice)];
}

async function askAddress(url: string, adminToken: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/console/api/meta`, {
      headers: { Authorization: `Bearer ${adminToken}`, 'X-Forwarded-For': invented.join(', ') },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return seen.safeParse(await response.json()).data?.address;
  } catch {
    return undefined;
  }
}
