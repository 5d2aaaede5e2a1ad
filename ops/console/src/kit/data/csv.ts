/** Formats rows as CSV (RFC 4180). The first row contains the headings. */
export const toCsv = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(cellOf).join(',')}\r\n`).join('');

/**
 * Start of a formula. Spaces and invisible characters may precede the sign. The sign may be
 * full-width.
 */
const formula = String.raw`[\s\p{Cf}]*[=+\-@＝＋－＠]`;
/** Start of a cell that a spreadsheet may interpret as a formula or as a cell separator. */
const begin = new RegExp(`^(?:${formula}|[;；\\t\\r\\n])`, 'u');
/**
 * Formula after a character that some spreadsheets use as a cell separator. In many countries this
 * is `;`.
 */
const later = new RegExp(`[;；\\t\\r\\n](?=${formula})`, 'gu');

/**
 * Quotes a cell. A text that looks like a formula gets an apostrophe, so that a spreadsheet does
 * not run it.
 */
function cellOf(text: string): string {
  const marked = text.replaceAll(later, "$&'");
  const safe = begin.test(marked) ? `'${marked}` : marked;
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
