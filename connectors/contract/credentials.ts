import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { isBaseUrl } from '../../shared/domain/urls.ts';
import type { CredentialReport } from './connector.ts';

// Schema parts for credentials of gateways (protocol/admin-api.md#credentials-of-a-push-profile). Error messages name the
// expected value and never quote the given one.

/** An http or https URL without user, query or fragment. */
export const baseUrl = (name: string) =>
  z
    .url({ protocol: /^https?$/, error: `${name} must be an http:// or https:// URL` })
    .max(2048)
    .refine((text) => isBaseUrl(text), `${name} must be a base URL: no user, query or fragment`);

/** An id or a secret of a gateway. */
export const secretText = (name: string) =>
  z
    .string(`${name} must be a text`)
    .min(1, `${name} must not be empty`)
    .max(1024, `${name} must be at most 1024 characters`)
    .refine((text) => /^[!-~]+$/.test(text), `${name} must be printable characters without blanks`);

/** One or several PEM certificates, trusted in addition to the system's. */
export const trustedCertificates = z
  .string('ca must be a text')
  .max(1_000_000, 'ca must be at most 1000000 characters')
  .refine((pem) => certificatesOf(pem) !== null, 'ca must be one or several PEM certificates');

/** URL of an HTTP proxy for CONNECT, possibly with user and password. */
export const proxyUrl = z
  .url({ protocol: /^https?$/, error: 'proxy must be an http:// or https:// URL' })
  .max(2048)
  .refine((text) => {
    if (!URL.canParse(text)) return false;
    const { hash, pathname, search } = new URL(text);
    return `${search}${hash}` === '' && pathname === '/';
  }, 'proxy must name a host, and a user and password at most');

/** Members of the profiles of every gateway. */
export const common = {
  /** Replaces the gateway's host; the gateway's paths follow it. */
  endpoint: baseUrl('endpoint').optional(),
  ca: trustedCertificates.optional(),
  /** `standard`: the http2-wrapper transport in place of the native one. */
  transport: z.literal('standard', 'transport must be "standard" where it is given').optional(),
  /** Rate that the gateway grants this app, in place of the published one. */
  ratePerSecond: z
    .int('ratePerSecond must be a whole number')
    .min(1, 'ratePerSecond must be at least 1')
    .max(10_000_000, 'ratePerSecond must be at most 10000000')
    .optional(),
};

/** Replaces the host of the token call. */
export const authEndpoint = { authEndpoint: baseUrl('authEndpoint').optional() };

/**
 * Reports the earliest expiry of the certificates in `ca`, and those that expired. Secrets and service accounts do not say
 * when they expire.
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

/** Parses all certificates of a PEM text; null without a certificate or with an invalid one. */
function certificatesOf(pem: string): X509Certificate[] | null {
  try {
    const certificates = (pem.match(pemBlock) ?? []).map((block) => new X509Certificate(block));
    return certificates.length > 0 ? certificates : null;
  } catch {
    return null;
  }
}

/** Parses the private key in a PEM text; null if it is invalid. */
export function keyOf(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}
