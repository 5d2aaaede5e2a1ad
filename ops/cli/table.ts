/** Value of a cell; numbers are right-aligned. */
export type Cell = string | number;

/**
 * Characters that take two columns of a terminal: those of East Asia with their punctuation, and
 * emoji.
 */
const wide =
  /(?![\uff61-\uffdc])[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/gu;

/** Returns the columns that a text takes. */
export const widthOf = (text: string): number => [...text].length + (text.match(wide)?.length ?? 0);

/** Returns a text with blanks behind it, so that it takes a number of columns. */
export const padded = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(columns - widthOf(text), 0));

const gap = '  ';
/** Fewest characters that a shortened text keeps. */
const leastText = 12;
/** Texts of at least so many characters without a space are no ids: they can be shortened. */
const longestId = 64;
const timePattern = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(:\d{2})\.\d{3}Z$/;
const minuteLength = '2027-01-31T12:00Z'.length;
const secondLength = '2027-01-31T12:00:00Z'.length;

/** Columns of the terminal. Output that goes elsewhere has no limit: its reader needs all of it. */
const terminalWidth = (): number =>
  process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;

interface Column {
  cells: Cell[];
  heading: string;
  width: number;
  /** Width with shortened times and texts. */
  least: number;
}

/**
 * Formats rows as aligned columns. If they are wider than `width`, times lose their seconds, texts
 * are shortened, and the last columns are dropped: a list names what matters most first. Ids and
 * numbers are never shortened.
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
        rows.map((row) => row[at] ?? ''),
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

function columnOf(heading: string, cells: Cell[]): Column {
  const widest = (lengthOf: (cell: Cell) => number) =>
    Math.max(widthOf(heading), ...cells.map(lengthOf));
  return {
    heading,
    cells,
    width: widest((cell) => widthOf(String(cell))),
    least: widest(leastLength),
  };
}

function leastLength(cell: Cell): number {
  const text = String(cell);
  if (timePattern.test(text)) return minuteLength;
  return isProse(text) ? Math.min(widthOf(text), leastText) : widthOf(text);
}

/** Tells whether a shortened text still says something, unlike half of an id. */
const isProse = (text: string): boolean => text.includes(' ') || text.length > longestId;

/**
 * Makes the columns as narrow as necessary, the widest first, and drops the last ones that have no
 * room even so.
 */
function narrow(columns: Column[], width: number): Column[] {
  const total = columns.reduce((sum, column) => sum + column.width + gap.length, -gap.length);
  const slack = columns.reduce((sum, column) => sum + column.width - column.least, 0);
  if (total <= width) return columns;
  if (total - slack > width && columns.length > 1) return narrow(columns.slice(0, -1), width);
  const fitted = columns.map((column) => ({ ...column }));
  for (let over = total - width; over > 0; over--) {
    const [widest] = fitted
      .filter((one) => one.width > one.least)
      .toSorted((a, b) => b.width - a.width);
    if (!widest) break;
    widest.width -= 1;
  }
  // A time loses several characters at once.
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

/** Returns the start of a text that takes a number of columns at most. */
function startOf(text: string, columns: number): string {
  const start = [...text].slice(0, Math.max(columns, 0));
  while (widthOf(start.join('')) > Math.max(columns, 0)) start.pop();
  return start.join('');
}
