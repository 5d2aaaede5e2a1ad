import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import { secureContextTrusting, sharedSecureContext } from '../../shared/http/trust.ts';
import type { TransportOptions } from './transport.ts';

/** Creates the secure context of a pool. Pools with the same `ca` and no certificate share one. */
export function secureContextOf({
  ca,
  certificate,
  privateKey,
}: Pick<TransportOptions, 'ca' | 'certificate' | 'privateKey'>): SecureContext {
  const isAnonymous = certificate === undefined && privateKey === undefined;
  if (isAnonymous && ca !== undefined) return sharedSecureContext(ca);
  return secureContextTrusting(ca, { cert: certificate, key: privateKey });
}

/** Returns the server name for SNI; empty for an IP address (RFC 6066 allows names only). */
export function serverNameOf(hostname: string): string {
  return isIP(hostname.replace(/^\[|\]$/g, '')) ? '' : hostname;
}

/** TLS alerts by which a peer rejects the client certificate. */
const refusals =
  /ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_|UNKNOWN_CA|ACCESS_DENIED|NO_CERTIFICATE)/;

export const isCertificateRefusal = (code: string): boolean =>
  refusals.test(code.replace(/ /g, '_').toUpperCase());

/** Returns the code of an error, or its name: short, bounded, without addresses. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
