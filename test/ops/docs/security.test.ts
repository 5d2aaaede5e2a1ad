import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, root), 'utf8');

/** Reference to a test in the table of attacks: its file and its name. */
const reference = /`(test\/[\w./-]+\.test\.ts)`: "([^"]+)"/g;

test.each([
  ['docs/security.md', '| attack | defence | test |'],
  ['docs/zh/security.md', '| 攻击 | 防御 | 测试 |'],
])('%s names an existing test for each attack', async (page, heading) => {
  const text = await read(page);
  const table = text.slice(text.indexOf(heading));
  const rows = table
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1);
  expect(rows.length).toBeGreaterThan(40);
  for (const row of rows) {
    const named = [...row.matchAll(reference)];
    expect(named.length, row).toBeGreaterThan(0);
    expect(row.match(/`test\//g), row).toHaveLength(named.length);
    for (const [, path = '', name = ''] of named) expect(await read(path), row).toContain(name);
  }
});
