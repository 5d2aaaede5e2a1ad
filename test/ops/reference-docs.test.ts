import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadRoutes } from '../../api/route-loader.ts';
import { docsFolder, pages } from '../../ops/docs/pages.ts';

const root = new URL('../../', import.meta.url);
const read = (url: URL) => readFile(url, 'utf8').catch(() => '');

describe('the reference', () => {
  test.each(Object.entries(pages))('docs/%s matches the code', async (name, render) => {
    const committed = await read(new URL(name, docsFolder));
    expect(committed, `docs/${name} differs from the code: run \`npm run docs\``).toBe(
      await render(),
    );
  });

  test('is the same on every machine', async () => {
    const texts = await Promise.all(Object.values(pages).map((render) => render()));
    for (const text of texts) expect(text).not.toContain(fileURLToPath(root));
    expect(await pages['reference/configuration.md']?.()).toMatch(
      /`DISPATCHER_THREADS`.*\| the number of cores \|/,
    );
  });

  test('names every route once', async () => {
    const names = ['http-api', 'admin-http-api'];
    const texts = await Promise.all(
      names.map((name) => read(new URL(`reference/${name}.md`, docsFolder))),
    );
    const headings = texts.flatMap((text) => text.match(/^### `[A-Z]+ .*$/gm) ?? []);
    const routes = await loadRoutes();
    expect(headings.toSorted()).toEqual(
      routes.map(({ method, paths }) => `### \`${method} ${paths[0]}\``).toSorted(),
    );
  });
});

/** Returns GitHub's anchors of the headings of a page. */
function anchorsOf(text: string): Set<string> {
  const headings = text.match(/^#{1,6} .*$/gm) ?? [];
  return new Set(headings.map((line) => slugOf(line.replace(/^#+ /, ''))));
}

const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** Returns the links of a page to files of the repository. */
const linksOf = (text: string): string[] =>
  [...text.replace(/```[\s\S]*?```/g, '').matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link));

const files = await promisify(execFile)('git', ['ls-files', '*.md'], { cwd: root });

test.each(files.stdout.trim().split('\n'))('every link of %s has a target', async (name) => {
  const base = new URL(name, root);
  for (const link of linksOf(await read(base))) {
    const target = new URL(link, base);
    const anchor = decodeURIComponent(target.hash.slice(1));
    target.hash = '';
    const isFolder = target.pathname.endsWith('/');
    const text = isFolder ? String(await readdir(target).catch(() => '')) : await read(target);
    expect(text, `${name}: ${link}`).not.toBe('');
    if (anchor !== '') expect([...anchorsOf(text)], `${name}: ${link}`).toContain(anchor);
  }
});
