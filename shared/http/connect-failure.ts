/** Codes of Node, OpenSSL and our own (`PROXY_407`): letters, digits and underscores, so never an address or a secret. */
const codeForm = /^[A-Z][A-Z0-9_]{2,59}$/;

/** What different libraries call the same thing. */
const otherNames: Readonly<Record<string, string>> = {
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  UND_ERR_SOCKET: 'ECONNRESET',
  CONNECT_TIMEOUT: 'ETIMEDOUT',
  ABORT_ERR: 'ETIMEDOUT',
  TIMEOUTERROR: 'ETIMEDOUT',
};

/**
 * The code of a failed connection for people: `ENOTFOUND`, `ECONNREFUSED`, `ETIMEDOUT`, `CERT_HAS_EXPIRED`,
 * `ERR_TLS_CERT_ALTNAME_INVALID`. Undefined for a text that is no such code.
 */
export function failureCode(text: string): string | undefined {
  // OpenSSL's alerts come with spaces: `ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE`, `ERR_SSL_SSLV3_ALERT_BAD CERTIFICATE`.
  const code = (text.startsWith('ERR_') ? text.replace(/[ /]/g, '_') : text).toUpperCase();
  const known = otherNames[code] ?? code;
  return codeForm.test(known) ? known : undefined;
}

/** The same of an error, or of the error inside it. */
export function failureCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  const isTelling = code !== 'Error' && code !== 'TypeError' && code !== 'AggregateError';
  if (isTelling) return failureCode(code);
  return error.cause === undefined ? undefined : failureCodeOf(error.cause);
}
