/** Joins blocks to a Markdown page with a note that the page is generated. */
export const page = (title: string, ...blocks: string[]): string =>
  `${[`# ${title}`, generatedNote, ...blocks].join('\n\n')}\n`;

const generatedNote =
  '<!-- Generated from the code by `npm run docs`: change the code, not this page. -->';

/** Formats a table. Cells are Markdown. Line breaks and `|` are escaped. */
export function table(headings: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n');
}

const cell = (text: string): string => text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

/** Formats a text as code. The text must not contain a backtick. */
export const code = (text: string): string => `\`${text}\``;

/** Formats a fenced code block. */
export const fenced = (language: string, text: string): string =>
  `\`\`\`${language}\n${text}\n\`\`\``;

/** Formats an integer with thousands separators, independent of the machine's locale. */
export const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ',');

/** Formats a size in the largest unit that divides it. */
export function bytes(value: number): string {
  if (value % (1024 * 1024) === 0) return `${value / 1024 / 1024} MB`;
  return value % 1024 === 0 ? `${value / 1024} KB` : `${grouped(value)} bytes`;
}
