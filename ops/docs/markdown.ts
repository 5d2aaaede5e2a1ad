/** Joins blocks to a page of Markdown, with a note that it is generated. */
export const page = (title: string, ...blocks: string[]): string =>
  `${[`# ${title}`, generatedNote, ...blocks].join('\n\n')}\n`;

const generatedNote =
  '<!-- Generated from the code by `npm run docs`: change the code, not this page. -->';

/** Writes a table; cells are Markdown; line breaks and bars are escaped. */
export function table(headings: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(headings), `|${'---|'.repeat(headings.length)}`, ...rows.map(line)].join('\n');
}

const cell = (text: string): string => text.replace(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');

/** Marks a text as code; it must hold no backtick. */
export const code = (text: string): string => `\`${text}\``;

/** Writes a fenced block. */
export const fenced = (language: string, text: string): string =>
  `\`\`\`${language}\n${text}\n\`\`\``;

/** Writes a whole number with separators, independent of the locale of the machine. */
export const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ',');

/** Writes a size in the largest unit that divides it. */
export function bytes(value: number): string {
  if (value % (1024 * 1024) === 0) return `${value / 1024 / 1024} MB`;
  return value % 1024 === 0 ? `${value / 1024} KB` : `${grouped(value)} bytes`;
}
