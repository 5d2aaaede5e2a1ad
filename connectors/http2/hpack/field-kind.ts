/** What a field of a reply means to us; a number, since it is kept with every entry of a table. */
import { staticTable } from './static-table.ts';

export const otherField = 0;
export const statusField = 1;
export const retryAfterField = 2;
/** Nothing that a reply may carry (RFC 9113 8.2, 8.3): it makes the whole reply malformed. */
export const malformedField = 3;

export type FieldKind =
  | typeof otherField
  | typeof statusField
  | typeof retryAfterField
  | typeof malformedField;

/** Fields of a connection, which HTTP/2 has none of (RFC 9113 8.2.2). */
const ofConnections = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** No capitals, no blanks, no controls (RFC 9113 8.2.1), and no colon but the one that a status begins with. */
const nameForm = /^[!-9;-@[-~]+$/;

/** Kind of a field by its name. */
export function kindOf(name: string): FieldKind {
  if (name === ':status') return statusField;
  if (name === 'retry-after') return retryAfterField;
  return nameForm.test(name) && !ofConnections.has(name) ? otherField : malformedField;
}

/** Kinds of the static table's entries by their index. */
export const staticKinds = Uint8Array.from([otherField, ...staticTable.map(([name]) => kindOf(name))]);

/** Statuses that the static table's entries stand for; 0 where they stand for none. */
export const staticStatuses = Uint16Array.from([
  0,
  ...staticTable.map(([name, value]) => (name === ':status' ? Number(value) : 0)),
]);
