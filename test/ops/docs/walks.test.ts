import { readFile, stat } from 'node:fs/promises';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);

/** Maximum number of files in each walk of docs/develop/walks.md, in order. */
const maxFiles = [15, 30, 10, 15, 18];

test('the walks through the code name existing files, and are short', async () => {
  const page = await readFile(new URL('docs/develop/walks.md', root), 'utf8');
  const walks = page.split(/^## /m).slice(1);
  expect(walks).toHaveLength(maxFiles.length);
  for (const [i, walk] of walks.entries()) {
    const files = [...walk.matchAll(/^\| `([\w./-]+)` \|/gm)].map(([, file = '']) => file);
    expect(files.length).toBeGreaterThan(0);
    expect(files.length).toBeLessThanOrEqual(maxFiles[i] ?? 0);
    for (const file of files) expect((await stat(new URL(file, root))).isFile(), file).toBe(true);
  }
});
