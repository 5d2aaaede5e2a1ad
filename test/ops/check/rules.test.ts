import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Repository rules that biome and the import rules cannot check. */

/** SQL forms that Citus refuses on a table that is sharded by `app_id` (operate/distributed.md). */
const refused: readonly (readonly [advice: string, pattern: RegExp])[] = [
  ['a ctid is a place on one server: name rows by their key', /\bctid\b/],
  [
    'a function in DO UPDATE: take the default from `excluded`',
    /\b(now|clock_timestamp|statement_timestamp)\(/,
  ],
  ['CASE value WHEN: write CASE WHEN value = …', /\bCASE (?!WHEN\b)[\w.]+\s+WHEN\b/],
];

/** Saves find rows by their ctid. The file contains another statement for a sharded database. */
const singleServerOnly = ['shared/db/tables/installation-saves.ts'];

test('statements of shared/db have forms that a sharded database can run', () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const files = execFileSync('git', ['ls-files', 'shared/db/tables/*.ts'], {
    cwd: root,
    encoding: 'utf8',
  });
  const found: string[] = [];
  for (const file of files.trim().split('\n')) {
    if (singleServerOnly.includes(file)) continue;
    const text = readFileSync(join(root, file), 'utf8');
    for (const [advice, pattern] of refused) {
      const parts = advice.includes('DO UPDATE') ? updatesOnConflict(text) : [text];
      if (parts.some((part) => pattern.test(part))) found.push(`${file}: ${advice}`);
    }
  }
  expect(found).toEqual([]);
});

/** Returns the text after each DO UPDATE, up to the end of its bracket or of the statement. */
function updatesOnConflict(text: string): string[] {
  return text
    .split('DO UPDATE')
    .slice(1)
    .map((rest) => {
      let depth = 0;
      const end = [...rest].findIndex((char) => {
        depth += char === '(' ? 1 : char === ')' ? -1 : 0;
        return depth < 0 || char === '`';
      });
      return rest.slice(0, end);
    });
}
