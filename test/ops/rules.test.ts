import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Rules of the repository that biome and the rules of imports cannot check. */

const maxEntries = 15;
/** Folders whose files belong together by their kind: pages, and steps in time. */
const exempt = /^(docs|shared\/db\/migrations)(\/|$)/;

test('a folder has at most 15 entries', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const files = execFileSync('git', ['ls-files', '*/*'], { cwd: root, encoding: 'utf8' }).trim().split('\n');
  const entries = new Map<string, Set<string>>();
  for (const file of files)
    for (let path = file; path.includes('/'); path = dirname(path)) {
      const folder = dirname(path);
      entries.set(folder, (entries.get(folder) ?? new Set()).add(path));
    }
  const full = [...entries].filter(([folder, { size }]) => size > maxEntries && !exempt.test(folder));
  expect(full.map(([folder, { size }]) => `${folder}: ${size}`)).toEqual([]);
});
