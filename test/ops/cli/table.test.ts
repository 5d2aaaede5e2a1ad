import { describe, expect, test } from 'vitest';
import { printable, table, widthOf } from '../../../ops/cli/table.ts';

const id = 'wHx47FrDSrY1GzAzkZtSHtOx';
const at = '2027-01-31T12:34:56.789Z';
const lines = (text: string) => text.split('\n');

describe('a table', () => {
  test('aligns numbers to the right, and texts to the left', () => {
    expect(
      lines(
        table(
          ['push', 'devices'],
          [
            ['a', 5],
            ['bc', 12345],
          ],
          80,
        ),
      ),
    ).toEqual(['push  devices', '----  -------', 'a           5', 'bc      12345']);
  });

  test('shows control characters and directions of text as escapes', () => {
    const cell = 'a\u001b[2J\u009bb\nc\td\u202ee 👨‍👩‍👧';
    expect(lines(table(['name'], [[cell]]))[2]).toBe(
      'a\\u001b[2J\\u009bb\\u000ac\\u0009d\\u202ee 👨‍👩‍👧',
    );
    expect(printable('a\n\u0007b', '\n')).toBe('a\n\\u0007b');
  });

  test('keeps every character if its output is not a terminal', () => {
    const text = table(['id', 'at', 'text'], [[id, at, 'x '.repeat(100)]]);
    expect(text).toContain(at);
    expect(text).toContain('x '.repeat(100).trimEnd());
  });

  test('removes seconds from times before it shortens other cells', () => {
    const text = table(['id', 'at', 'text'], [[id, at, 'a text with words']], 66);
    expect(lines(text)[2]).toBe(`${id}  2027-01-31T12:34:56Z  a text with words`);
    expect(lines(table(['id', 'at'], [[id, at]], 43))[2]).toBe(`${id}  2027-01-31T12:34Z`);
  });

  test('shortens texts, but never an id', () => {
    const [, , row = ''] = lines(table(['id', 'text'], [[id, 'a sentence '.repeat(20)]], 80));
    expect(row).toHaveLength(80);
    expect(row).toMatch(new RegExp(`^${id}  a sentence .*…$`));
    expect(table(['id', 'text'], [[id, id]], 40)).toContain(id);
  });

  test('drops the last columns if they do not fit', () => {
    const text = table(['id', 'state', 'other'], [[id, 'sending', id]], 40);
    expect(lines(text)[0]).toBe('id                        state');
    expect(text).not.toContain('other');
  });

  test('counts East Asian characters as two columns', () => {
    const rows = [
      ['推送', 5],
      ['お知らせ', 12],
      ['sale 🎉', 7],
    ];
    expect(lines(table(['名称', '设备数'], rows, 80))).toEqual([
      '名称      设备数',
      '--------  ------',
      '推送           5',
      'お知らせ      12',
      'sale 🎉        7',
    ]);
  });

  test('shortens Chinese texts by their columns', () => {
    const [, , row = ''] = lines(
      table(['ID', '原因'], [[id, '没有拥有该 topic 的推送通道'.repeat(5)]], 80),
    );
    expect(widthOf(row)).toBeLessThanOrEqual(80);
    expect(widthOf(row)).toBeGreaterThan(77);
    expect(row).toMatch(/…$/);
  });

  test.each([40, 60, 80, 120])('fits into %i columns', (width) => {
    const row = [id, 'APNs', at, at, 'a reason of the gateway '.repeat(4), 12345];
    const text = table(['app', 'gateway', 'since', 'until', 'reason', 'devices'], [row], width);
    for (const line of lines(text)) expect(line.length).toBeLessThanOrEqual(width);
    expect(text).toContain(id);
  });
});
