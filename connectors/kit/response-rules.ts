/**
 * Tables of what gateways answer: one row per code, looked up in one way. A vendor's `errors.ts` is such a table,
 * each row with its source; what is not in it is judged with care and never deletes a token.
 */
import type { Attempt } from '../contract/connector.ts';
import { capped, failed, halt, retry, sent } from './attempt-results.ts';

/** What follows from an answer, before it is told as an `Attempt`. */
export type Reaction =
  | 'sent'
  /** The gateway says of this token that it is dead. Of a whole request only where it had one target. */
  | 'dead_token'
  /** These recipients are refused for good; others may do well. */
  | 'fail'
  /** As `fail`: the gateway has nothing to send it as, or folds it. */
  | 'drop'
  /** Every recipient of this push would be refused alike: the rest of it is not sent. */
  | 'fail_push'
  | 'retry'
  /** The gateway is sent to too fast: these and the rest of this send wait. */
  | 'throttle'
  /** A new access token, once; then `halt`. */
  | 'renew_token'
  /** Credentials or configuration are wrong. */
  | 'halt'
  /** The day's quota of this class is used up: nothing more of it today, by anybody. */
  | 'cap'
  /** Some token of the request is bad, nobody knows which: halves until it is one, which then is `alone`. */
  | 'ambiguous';

export interface Row {
  /** As the gateway writes it, a number as text. */
  code: string;
  /** Short, from a bounded set: it becomes a metric label and a reason on the record. */
  reason: string;
  reaction: Reaction;
  /** For an operator, where there is something to mend (`halt`, `renew_token`). */
  sentence?: string;
  /** `retry` and `throttle`: not before. */
  afterMs?: number;
  /** `ambiguous`: what it means of a single target. */
  alone?: 'dead_token' | 'fail';
}

/** Rows of the kinds that tables have many of. */
export const tooFast = (code: string, reason: string): Row => ({ code, reason, reaction: 'throttle' });
export const badMessage = (code: string, reason: string): Row => ({ code, reason, reaction: 'fail_push' });
/** With the sentence for whoever can mend it. */
export const mend = (code: string, reason: string, sentence: string): Row => ({
  code,
  reason,
  reaction: 'halt',
  sentence,
});

/** Looks codes up in one gateway's table. */
export type Table = (code: string | number) => Row;

/** The look-up of a gateway's rows; of a code that is not there, `unknown`, which deletes nothing. */
export function tableOf(rows: readonly Row[], unknown: Omit<Row, 'code'> = unknownCode): Table {
  const byCode = new Map(rows.map((row) => [row.code, row]));
  return (code) => byCode.get(String(code)) ?? { ...unknown, code: String(code) };
}

const unknownCode: Omit<Row, 'code'> = { reason: 'unknown_code', reaction: 'fail' };

/** What a bare HTTP status means where the body says nothing. Deletes nothing. */
export function rowOfStatus(status: number): Row {
  const code = `http_${status}`;
  if (status === 429 || status === 503) return { code, reason: code, reaction: 'throttle' };
  if (status >= 500) return { code, reason: code, reaction: 'retry' };
  if (status === 401) return { code, reason: code, reaction: 'renew_token', sentence: refusedBy(status) };
  if (status === 403 || status === 404 || status === 407)
    return { code, reason: code, reaction: 'halt', sentence: refusedBy(status) };
  return { code, reason: code, reaction: 'fail_push' };
}

const refusedBy = (status: number): string =>
  `The gateway answers with status ${status}: check the credentials, the endpoint and the app's rights there.`;

/** The attempt of a row once nothing more is tried for it here. `status`: the HTTP status. */
export function attemptOf(
  row: Row,
  status: number,
  told: { retryAfterMs?: number | null; isAlone?: boolean } = {},
): Attempt {
  const { reaction, reason, sentence = `The gateway answered ${reason} (${row.code}).` } = row;
  switch (reaction) {
    case 'sent':
      return sent;
    case 'dead_token':
      return { kind: 'invalid_token', status, reason };
    case 'drop':
      return { kind: 'rejected', outcome: 'dropped', status, reason };
    case 'fail':
    case 'fail_push':
      return failed(status, withCode(row));
    case 'retry':
    case 'throttle':
      return retry(status, reason, told.retryAfterMs ?? row.afterMs ?? null);
    case 'cap':
      return capped(status, reason);
    case 'renew_token':
    case 'halt':
      return halt(status, reason, sentence);
    case 'ambiguous':
      return told.isAlone && row.alone === 'dead_token'
        ? { kind: 'invalid_token', status, reason }
        : failed(status, reason);
  }
}

/** Of a code that nobody foresaw the record shows the code; a gateway's codes are short. */
function withCode({ reason, code }: Row): string {
  return reason === 'unknown_code' ? `unknown code ${code.replace(/[^\w.-]/g, '').slice(0, 24)}` : reason;
}
