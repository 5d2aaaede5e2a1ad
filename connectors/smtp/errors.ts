import { reasonAs } from '../../shared/domain/reasons.ts';
import type { ProviderResult } from '../provider.ts';

/** Reasons by the library's error codes (nodemailer, "Error codes"); other codes are `error`. */
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

/** Errors about this mail: final with a 5xx reply (RFC 5321 4.2.1). All other errors are temporary. */
const mailErrors = new Set(['EENVELOPE', 'EMESSAGE']);

function member(error: unknown, name: 'code' | 'responseCode'): unknown {
  return typeof error === 'object' && error !== null && name in error
    ? Object.getOwnPropertyDescriptor(error, name)?.value
    : undefined;
}

/**
 * Returns the result of a failed mail. Ignores the error's text, since servers quote the address in it. Retries after bad
 * credentials, which the operator can fix while the mail waits.
 */
export function readFailure(error: unknown): ProviderResult {
  const code = String(member(error, 'code') ?? '');
  const status = member(error, 'responseCode');
  const known = reasons.get(code) ?? 'error';
  const reason =
    typeof status === 'number' && status >= 400 && status < 600
      ? reasonAs(`${known}_${status}`, known, { status })
      : known;
  const isFinal = mailErrors.has(code) && (typeof status !== 'number' || status >= 500);
  return isFinal ? { kind: 'refused', reason } : { kind: 'retry', reason, afterMs: null };
}
