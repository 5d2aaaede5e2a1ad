import type { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { utcDay } from '../../shared/clock.ts';
import { isBaseUrl } from '../../shared/domain/addresses.ts';
import { reason } from '../../shared/domain/reasons.ts';
import type { CredentialReport } from './connector.ts';
import { causeOf, certificatesIn, type KeyKind, originalIfUsual, readPrivateKey } from './pem.ts';

// Schema parts for credentials (protocol/admin-api.md#credentials-of-a-push-profile). Error
// messages name the expected value and never quote the given value.

/** An http or https URL without user, query and fragment. */
export const baseUrl = (name: string) =>
  z
    .url({ protocol: /^https?$/, error: `${name} must be an http:// or https:// URL` })
    .max(2048)
    .refine((text) => isBaseUrl(text), `${name} must be a base URL: no user, query or fragment`);

/** A required string. */
export const requiredText = (name: string) =>
  z.string({
    error: ({ input }) => (input === undefined ? `${name} is missing` : `${name} must be a text`),
  });

/** An id or a secret, as gateways issue them. */
export const secretText = (name: string) =>
  requiredText(name)
    .min(1, `${name} must not be empty`)
    .max(1024, `${name} must be at most 1024 characters`)
    .refine((text) => /^[!-~]+$/.test(text), `${name} must be printable characters without blanks`);

/** One or more PEM certificates, trusted in addition to the system's certificates. */
export const trustedCertificates = z
  .string('ca must be a text')
  .max(1_000_000, 'ca must be at most 1000000 characters')
  .transform((text, context) => {
    const certificates = certificatesOf(text);
    if (certificates) return originalIfUsual(text, certificates.map(String).join(''));
    const cause = causeOf(text, (label) => label === 'CERTIFICATE');
    context.addIssue({
      code: 'custom',
      message: `ca must be one or several PEM certificates; ${cause}`,
    });
    return z.NEVER;
  });

/** URL of an HTTP proxy for CONNECT. It may contain user and password. */
export const proxyUrl = z
  .url({ protocol: /^https?$/, error: 'proxy must be an http:// or https:// URL' })
  .max(2048)
  .refine((text) => {
    if (!URL.canParse(text)) return false;
    const { hash, pathname, search } = new URL(text);
    return `${search}${hash}` === '' && pathname === '/';
  }, 'proxy must name a host, and a user and password at most');

/** Members that profiles of all gateways have. */
export const common = {
  /** Replaces the gateway's host. The gateway's paths are appended to it. */
  endpoint: baseUrl('endpoint').optional(),
  ca: trustedCertificates.optional(),
  /** Has no effect. Accepted because profiles of earlier versions contain it. */
  transport: z.literal('standard', 'transport must be "standard" where it is given').optional(),
  /** Rate that the gateway grants this app. Replaces the published rate. */
  ratePerSecond: z
    .int('ratePerSecond must be a whole number')
    .min(1, 'ratePerSecond must be at least 1')
    .max(10_000_000, 'ratePerSecond must be at most 10000000')
    .optional(),
};

/** Replaces the host of the token call. */
export const authEndpoint = { authEndpoint: baseUrl('authEndpoint').optional() };

/**
 * Reports the earliest expiry of the certificates in `ca`, and a problem if it has passed. Secrets
 * and service accounts contain no expiry time.
 */
export function inspectTrust(
  ca: string | undefined,
  nowMs: number,
): Omit<CredentialReport, 'kind'> {
  const ends = (ca === undefined ? [] : (certificatesOf(ca) ?? [])).map((one) =>
    one.validToDate.getTime(),
  );
  const expiresAtMs = ends.length > 0 ? Math.min(...ends) : null;
  const problems =
    expiresAtMs !== null && expiresAtMs <= nowMs
      ? [reason('caExpired', { day: utcDay(expiresAtMs) })]
      : [];
  // The credentials are refused only if all certificates in `ca` have expired.
  const isUseless = ends.length > 0 && ends.every((end) => end <= nowMs);
  const [refusal] = isUseless ? problems : [];
  return { expiresAtMs, problems, ...(refusal === undefined ? {} : { refusal }) };
}

/** Parses all certificates of a PEM text. Returns null if the text contains no certificate or an invalid certificate. */
function certificatesOf(pem: string): X509Certificate[] | null {
  const certificates = certificatesIn(pem);
  return certificates && certificates.length > 0 ? certificates : null;
}

/**
 * A private key in PEM, converted to the usual form. The error says what the text contains instead.
 */
export const privateKeyText = (name: string, kind: KeyKind) =>
  requiredText(name).transform((text, context) => {
    const read = readPrivateKey(text, kind);
    if ('pem' in read) return read.pem;
    context.addIssue({ code: 'custom', message: `${name} ${read.error}` });
    return z.NEVER;
  });
