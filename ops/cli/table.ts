/** Value of a cell. Numbers are right-aligned. */
export type Cell = string | number;

/** Characters that take two terminal columns: East Asian characters and punctuation, and emoji. */
const wide =
  /(?![\uff61-\uffdc])[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/gu;

/** Returns the number of terminal columns of a text. */
export const widthOf = (text: string): number => [...text].length + (text.match(wide)?.length ?? 0);

/** Appends spaces until the text takes the given number of columns. */
export const padded = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(columns - widthOf(text), 0));

/** Characters that change what a terminal shows: control characters, and directions of text. */
const unprintable = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Replaces characters that a terminal does not print with their escapes, such as `\\u001b`. Users,
 * devices and gateways choose many of the values that a command prints. `kept` characters stay.
 */
export const printable = (text: string, kept = ''): string =>
  text.replaceAll(unprintable, (character) =>
    kept.includes(character)
      ? character
      : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );

const gap = '  ';
/** Minimum number of characters of a shortened text. */
const minTextLength = 12;
/**
 * A text without spaces is shortened only if it has at least this many characters. Shorter texts
 * may be ids.
 */
const longestId = 64;
const timePattern = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(:\d{2})\.\d{3}Z$/;
const minuteLength = '2027-01-31T12:00Z'.length;
const secondLength = '2027-01-31T12:00:00Z'.length;

/**
 * Number of terminal columns. Unlimited if the output is not a terminal, because a program needs
 * the full values.
 */
const terminalWidth = (): number =>
  process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;

interface Column {
  cells: Cell[];
  heading: string;
  width: number;
  /** Minimum width, with shortened times and texts. */
  minWidth: number;
}

/**
 * Formats rows as aligned columns. If the rows are wider than `width`, removes the seconds of
 * times, shortens texts, and drops the last columns. The first columns of a list are the most
 * important. Ids and numbers are never shortened.
 */
export function table(
  headings: readonly string[],
  rows: readonly Cell[][],
  width = terminalWidth(),
): string {
  const columns = narrow(
    headings.map((heading, at) =>
      columnOf(
        heading,
        rows.map((row) => printableCell(row[at] ?? '')),
      ),
    ),
    width,
  );
  const line = (cells: Cell[]) =>
    cells
      .map((cell, at) => {
        const room = columns[at]?.width ?? 0;
        return typeof cell === 'number' ? String(cell).padStart(room) : padded(cell, room);
      })
      .join(gap)
      .trimEnd();
  return [
    line(columns.map(({ heading }) => heading)),
    line(columns.map((column) => '-'.repeat(column.width))),
    ...rows.map((_row, at) => line(columns.map(({ cells }) => cells[at] ?? ''))),
  ].join('\n');
}

const printableCell = (cell: Cell): Cell => (typeof cell === 'number' ? cell : printable(cell));

function columnOf(heading: string, cells: Cell[]): Column {
  const widest = (lengthOf: (cell: Cell) => number) =>
    Math.max(widthOf(heading), ...cells.map(lengthOf));
  return {
    heading,
    cells,
    width: widest((cell) => widthOf(String(cell))),
    minWidth: widest(minLength),
  };
}

function minLength(cell: Cell): number {
  const text = String(cell);
  if (timePattern.test(text)) return minuteLength;
  return isProse(text) ? Math.min(widthOf(text), minTextLength) : widthOf(text);
}

/** True if the text is still useful when it is shortened. Half of an id is not. */
const isProse = (text: string): boolean => text.includes(' ') || text.length > longestId;

/**
 * Narrows the columns as far as necessary, starting with the widest. Drops the last columns if the
 * rest is still too wide.
 */
function narrow(columns: Column[], width: number): Column[] {
  const total = columns.reduce((sum, column) => sum + column.width + gap.length, -gap.length);
  const slack = columns.reduce((sum, column) => sum + column.width - column.minWidth, 0);
  if (total <= width) return columns;
  if (total - slack > width && columns.length > 1) return narrow(columns.slice(0, -1), width);
  const fitted = columns.map((column) => ({ ...column }));
  for (let over = total - width; over > 0; over--) {
    const [widest] = fitted
      .filter((one) => one.width > one.minWidth)
      .toSorted((a, b) => b.width - a.width);
    if (!widest) break;
    widest.width -= 1;
  }
  // Formats the cells again, because a shortened time loses several characters at once.
  return fitted.map((one) =>
    columnOf(
      one.heading,
      one.cells.map((cell) => shortened(cell, one.width)),
    ),
  );
}

function shortened(cell: Cell, width: number): Cell {
  if (typeof cell === 'number' || widthOf(cell) <= width) return cell;
  const [, minute, second] = timePattern.exec(cell) ?? [];
  if (minute !== undefined) return width >= secondLength ? `${minute}${second}Z` : `${minute}Z`;
  return isProse(cell) ? `${startOf(cell, width - 1)}…` : cell;
}

/** Returns the start of a text that takes at most the given number of columns. */
function startOf(text: string, columns: number): string {
  const start = [...text].slice(0, Math.max(columns, 0));
  while (widthOf(start.join('')) > Math.max(columns, 0)) start.pop();
  return start.join('');
}
