import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, root), 'utf8');

/** Reference to a test in `docs/security.md`: its file and its name. */
const reference = /`(test\/[\w./-]+\.test\.ts)`: "([^"]+)"/g;

test('docs/security.md names an existing test for each attack', async () => {
  const text = await read('docs/security.md');
  const table = text.slice(text.indexOf('| attack | defence | test |'));
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
