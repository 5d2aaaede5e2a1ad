/** Kinds of response fields; numbers, since every table entry stores one. */
import { staticTable } from './static-table.ts';

const otherField = 0;
export const statusField = 1;
export const retryAfterField = 2;
/** Field that is invalid in a response and makes it malformed (RFC 9113 8.2, 8.3). */
export const malformedField = 3;

export type FieldKind =
  | typeof otherField
  | typeof statusField
  | typeof retryAfterField
  | typeof malformedField;

/** Connection-specific fields, invalid in HTTP/2 (RFC 9113 8.2.2). */
const connectionFields = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** Valid names: without capitals, blanks, control characters (RFC 9113 8.2.1) and colons. */
const validName = /^[!-9;-@[-~]+$/;

/** Returns the kind of a field. */
export function kindOf(name: string): FieldKind {
  if (name === ':status') return statusField;
  if (name === 'retry-after') return retryAfterField;
  return validName.test(name) && !connectionFields.has(name) ? otherField : malformedField;
}

/** Kinds of the entries of the static table, by index. */
export const staticKinds = Uint8Array.from([otherField, ...staticTable.map(([name]) => kindOf(name))]);

/** Statuses of the entries of the static table, by index; 0 for other fields. */
export const staticStatuses = Uint16Array.from([
  0,
  ...staticTable.map(([name, value]) => (name === ':status' ? Number(value) : 0)),
]);
