import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import type { CredentialReport } from './connector.ts';

/**
 * Credentials of the gateways that are spoken to with a secret or a service account
 * (protocol/admin-api.md#credentials-of-a-push-profile). Every message says what is expected and none quotes what was given.
 */
/** An http or https URL without user, query or fragment. */
export const baseUrl = (name: string) =>
  z
    .url({ protocol: /^https?$/, error: `${name} must be an http:// or https:// URL` })
    .max(2048)
    .refine((text) => isPlainBase(text), `${name} must be a base URL: no user, query or fragment`);

/** An id or a secret as gateways give them out. */
export const secretText = (name: string) =>
  z
    .string(`${name} must be a text`)
    .min(1, `${name} must not be empty`)
    .max(1024, `${name} must be at most 1024 characters`)
    .refine((text) => /^[!-~]+$/.test(text), `${name} must be printable characters without blanks`);

/** PEM certificates trusted beside the system's; one or several, one after the other. */
export const trustedCertificates = z
  .string('ca must be a text')
  .max(1_000_000, 'ca must be at most 1000000 characters')
  .refine((pem) => certificatesOf(pem) !== null, 'ca must be one or several PEM certificates');

/** An HTTP proxy to reach the gateway through by CONNECT; user and password may stand in it. */
export const proxyUrl = z
  .url({ protocol: /^https?$/, error: 'proxy must be an http:// or https:// URL' })
  .max(2048)
  .refine((text) => {
    if (!URL.canParse(text)) return false;
    const { hash, pathname, search } = new URL(text);
    return `${search}${hash}` === '' && pathname === '/';
  }, 'proxy must name a host, and a user and password at most');

/** Members that every profile takes, whatever its gateway. */
export const common = {
  /** In place of the gateway's own host; the gateway's paths follow it. */
  endpoint: baseUrl('endpoint').optional(),
  ca: trustedCertificates.optional(),
  /** `standard` asks for the common HTTP client in place of our own. */
  transport: z.literal('standard', 'transport must be "standard" where it is given').optional(),
  /** What the gateway allows this app in a second, in place of what it publishes for all. */
  ratePerSecond: z
    .int('ratePerSecond must be a whole number')
    .min(1, 'ratePerSecond must be at least 1')
    .max(10_000_000, 'ratePerSecond must be at most 10000000')
    .optional(),
};

/** In place of the host of the token call, where there is one. */
export const authEndpoint = { authEndpoint: baseUrl('authEndpoint').optional() };

/**
 * What the certificates of `ca` say of their end: the earliest, in epoch milliseconds, and sentences about
 * those that ended. Secrets and service accounts name no end of their own.
 */
export function inspectTrust(ca: string | undefined, nowMs: number): Omit<CredentialReport, 'kind'> {
  const ends = (ca === undefined ? [] : (certificatesOf(ca) ?? [])).map((one) => one.validToDate.getTime());
  const expiresAtMs = ends.length > 0 ? Math.min(...ends) : null;
  const problems =
    expiresAtMs !== null && expiresAtMs <= nowMs
      ? [`A certificate in ca expired on ${new Date(expiresAtMs).toISOString().slice(0, 10)}: replace it.`]
      : [];
  return { expiresAtMs, problems };
}

const pemBlock = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** Every certificate of a PEM text; null where there is none, or one that cannot be read. */
function certificatesOf(pem: string): X509Certificate[] | null {
  try {
    const certificates = (pem.match(pemBlock) ?? []).map((block) => new X509Certificate(block));
    return certificates.length > 0 ? certificates : null;
  } catch {
    return null;
  }
}

/** The private key in a PEM text; null where it cannot be read. */
export function keyOf(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}

function isPlainBase(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return `${username}${password}${search}${hash}` === '';
}
