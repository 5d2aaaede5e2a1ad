import type { ProviderResult } from '../provider.ts';

/** Codes of the library's errors (nodemailer, "Error codes"); anything else is `error`. */
const reasons = new Map([
  ['ECONNECTION', 'connection_lost'],
  ['ESOCKET', 'connection_lost'],
  ['ECONNREFUSED', 'connect_failed'],
  ['EDNS', 'connect_failed'],
  ['ETIMEDOUT', 'timeout'],
  ['ETLS', 'tls_failed'],
  ['EAUTH', 'authentication'],
  ['ENOAUTH', 'authentication'],
  ['EOAUTH2', 'authentication'],
  ['EENVELOPE', 'envelope'],
  ['EMESSAGE', 'message'],
  ['ESTREAM', 'message'],
  ['EPROTOCOL', 'protocol'],
]);

/** What is about this very mail: with a 5xx reply it is final (RFC 5321 4.2.1). The rest may mend itself. */
const ofTheMail = new Set(['EENVELOPE', 'EMESSAGE']);

function member(error: unknown, name: 'code' | 'responseCode'): unknown {
  return typeof error === 'object' && error !== null && name in error
    ? Object.getOwnPropertyDescriptor(error, name)?.value
    : undefined;
}

/**
 * What a failed mail means. The text of the error is never used: servers quote the address in it. Bad
 * credentials are tried again, since they are the operator's to mend while the mail waits.
 */
export function readFailure(error: unknown): ProviderResult {
  const code = String(member(error, 'code') ?? '');
  const status = member(error, 'responseCode');
  const known = reasons.get(code) ?? 'error';
  const reason = typeof status === 'number' && status >= 400 && status < 600 ? `${known}_${status}` : known;
  const isFinal = ofTheMail.has(code) && (typeof status !== 'number' || status >= 500);
  return isFinal ? { kind: 'refused', reason } : { kind: 'retry', reason, afterMs: null };
}
