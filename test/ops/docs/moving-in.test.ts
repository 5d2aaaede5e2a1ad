import { access, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { carillon } from '../../support/cli.ts';

/** `docs/moving-in.md` and its Chinese twin. */
const docs = fileURLToPath(new URL('../../../docs/', import.meta.url));
const pages = ['moving-in.md', 'zh/moving-in.md'];
const read = (page: string) => readFile(join(docs, page), 'utf8');

const blocks = (text: string) => [...text.matchAll(/^```\w+\n[\s\S]+?^```$/gm)].map(([block]) => block);
/** What stands in code marks and is no block: paths, options, lines of SDKs. */
const marks = (text: string) =>
  [...text.replaceAll(/^```\w+\n[\s\S]+?^```$/gm, '').matchAll(/`([^`\n]+)`/g)]
    .map(([, code]) => code)
    .sort();

test('both languages name the same commands, paths, options and lines', async () => {
  const [english = '', chinese = ''] = await Promise.all(pages.map(read));
  expect(blocks(english).length).toBeGreaterThan(4);
  expect(blocks(chinese)).toEqual(blocks(english));
  expect(new Set(marks(chinese))).toEqual(new Set(marks(english)));
});

test('every command that they name is there', async () => {
  const { stdout } = await carillon(['--help']);
  const known = [...stdout.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
  const named = [...(await read('moving-in.md')).matchAll(/carillon ([a-z][a-z-]+)/g)].map(
    ([, name]) => name,
  );
  expect(named.length).toBeGreaterThan(10);
  for (const name of named) expect(known).toContain(name);
});

test('every file that they link to is there', async () => {
  for (const page of pages) {
    const links = [...(await read(page)).matchAll(/\]\(([^)#]+)\)/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(2);
    for (const link of links) await access(join(docs, dirname(page), link));
  }
});
