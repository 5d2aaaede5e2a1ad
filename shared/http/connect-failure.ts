/** Form of the codes of Node, OpenSSL and this service (`PROXY_407`): never matches an address or a secret. */
const codePattern = /^[A-Z][A-Z0-9_]{2,59}$/;

/** Codes of other libraries, with their equivalents of Node. */
const equivalents: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  UND_ERR_SOCKET: 'ECONNRESET',
  CONNECT_TIMEOUT: 'ETIMEDOUT',
  ABORT_ERR: 'ETIMEDOUT',
  TIMEOUTERROR: 'ETIMEDOUT',
};

/**
 * Returns the code of a failed connection for the operator: `ENOTFOUND`, `ECONNREFUSED`, `ETIMEDOUT`, `CERT_HAS_EXPIRED`,
 * `ERR_TLS_CERT_ALTNAME_INVALID`. Undefined for any other text.
 */
export function failureCode(text: string): string | undefined {
  // Alerts of OpenSSL contain spaces and slashes: `ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE`, `ERR_SSL_SSLV3_ALERT_BAD
  // CERTIFICATE`.
  const code = (text.startsWith('ERR_') ? text.replace(/[ /]/g, '_') : text).toUpperCase();
  const known = equivalents[code] ?? code;
  return codePattern.test(known) ? known : undefined;
}

/** Returns the code of an error or of its cause. */
export function failureCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const isSpecific = code !== 'Error' && code !== 'TypeError' && code !== 'AggregateError';
  if (isSpecific) return failureCode(code);
  return error.cause === undefined ? undefined : failureCodeOf(error.cause);
}
