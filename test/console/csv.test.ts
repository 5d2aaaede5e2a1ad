import { expect, test } from 'vitest';
import { toCsv } from '../../ops/console/src/kit/data/csv.ts';

/** Splits a line like a spreadsheet that uses `separator` and does not support quotes. */
const cells = (csv: string, separator: RegExp) =>
  csv.split(separator).map((cell) => cell.replace(/^"/, ''));

test.each([
  '=1+1',
  '+1',
  '-1',
  '@SUM(A1)',
  ';=1+1',
  '\t=1+1',
  '\r=1+1',
  '\n=1+1',
  ' =1+1',
  '\u00A0=1+1',
  '\u200B=1+1',
  '\uFEFF=HYPERLINK("http://x.test")',
  '＝1+1',
  '＋1',
  '－1',
  '＠SUM',
  '；＝1',
  'name;=1+1;',
  'name; +1',
  'name\t@x',
  'two\n=lines',
  'two\r\n-lines',
])('no cell of an export starts a formula: %j', (text) => {
  const csv = toCsv([['head'], ['Anna', text]]);
  for (const separator of [/,|\r\n/, /[;；]|\r?\n|\r/, /\t|\r?\n|\r/])
    for (const cell of cells(csv, separator))
      expect(cell.replace(/^[\s\p{Cf}]+/u, '')).not.toMatch(/^[=+\-@＝＋－＠]/);
});

test('other cells are written unchanged, and a leading separator gets an apostrophe', () => {
  expect(toCsv([['a', 'b c', '1', '新', 'a=b', 'x-y']])).toBe('a,b c,1,新,a=b,x-y\r\n');
  expect(toCsv([['say "hi"', 'a,b', 'a;b', '']])).toBe('"say ""hi""","a,b","a;b",\r\n');
  expect(toCsv([[';a', '\ta']])).toBe(`"';a",'\ta\r\n`);
});
