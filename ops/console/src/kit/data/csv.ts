/** Returns rows as CSV (RFC 4180); the first row has the headings. */
export const toCsv = (rows: readonly (readonly string[])[]): string =>
  rows.map((row) => `${row.map(cellOf).join(',')}\r\n`).join('');

/**
 * Beginning of a formula. Blanks and unseen characters may come before its sign, which may be
 * full-width.
 */
const formula = String.raw`[\s\p{Cf}]*[=+\-@＝＋－＠]`;
/**
 * Beginning of a cell that a spreadsheet could read as a formula, or split where another character
 * separates cells.
 */
const begin = new RegExp(`^(?:${formula}|[;；\\t\\r\\n])`, 'u');
/**
 * Formula after a character that separates cells in some spreadsheets, such as `;` in many
 * countries.
 */
const later = new RegExp(`[;；\\t\\r\\n](?=${formula})`, 'gu');

/**
 * Quotes a cell. A spreadsheet would run a text that begins like a formula, so such a text gets an
 * apostrophe.
 */
function cellOf(text: string): string {
  const marked = text.replaceAll(later, "$&'");
  const safe = begin.test(marked) ? `'${marked}` : marked;
  return /[",;\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
