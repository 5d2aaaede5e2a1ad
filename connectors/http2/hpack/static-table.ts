/** Static table of HPACK, by index from 1 (RFC 7541 Appendix A). */
export const staticTable: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
];

/** Size of an entry in addition to its bytes (RFC 7541 4.1). */
export const entryOverhead = 32;

/** Default size of a dynamic table (RFC 9113 6.5.2). */
export const defaultTableSize = 4096;

/** Kinds of response fields. They are numbers, because each entry of a table stores its kind. */
const otherField = 0;
export const statusField = 1;
export const retryAfterField = 2;
/** Field that is invalid in a response and makes it malformed (RFC 9113 8.2, 8.3). */
export const malformedField = 3;
/** Field that the caller reads (`TransportOptions.responseHeader`). */
export const wantedField = 4;

export type FieldKind =
  | typeof otherField
  | typeof statusField
  | typeof retryAfterField
  | typeof malformedField
  | typeof wantedField;

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
export const staticKinds = Uint8Array.from([
  otherField,
  ...staticTable.map(([name]) => kindOf(name)),
]);

/** Statuses of the entries of the static table, by index; 0 for other fields. */
export const staticStatuses = Uint16Array.from([
  0,
  ...staticTable.map(([name, value]) => (name === ':status' ? Number(value) : 0)),
]);
