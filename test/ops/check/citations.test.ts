import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const reference = join(root, 'docs', 'reference');
/** Skipped folders. `pages` is the copy that the build of docs/site creates. */
const skipped = new Set(['node_modules', '.git', 'dist', '.carillon', 'pages']);

async function filesBelow(folder: string, ending: RegExp): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .filter(({ name }) => !skipped.has(name))
      .map((entry) => {
        const path = join(folder, entry.name);
        return entry.isDirectory()
          ? filesBelow(path, ending)
          : ending.test(entry.name)
            ? [path]
            : [];
      }),
  );
  return found.flat();
}

/**
 * Returns GitHub's anchor of a heading: lower case, hyphens instead of spaces, without other
 * punctuation.
 */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');

const anchors = new Map<string, Set<string> | undefined>();

/** Returns the anchors of a page, or undefined if there is no such page. */
async function anchorsOf(page: string): Promise<Set<string> | undefined> {
  if (!anchors.has(page)) {
    const text = await readFile(page, 'utf8').catch(() => undefined);
    const headings = text?.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} +(.+)$/gm);
    anchors.set(
      page,
      headings && new Set([...headings].map(([, heading = '']) => anchorOf(heading))),
    );
  }
  return anchors.get(page);
}

async function isBroken(page: string, anchor: string | undefined): Promise<boolean> {
  const known = await anchorsOf(page);
  return known === undefined || (anchor !== undefined && !known.has(anchor));
}

test('every citation in a comment refers to docs/reference/protocol or docs/develop', async () => {
  const files = await filesBelow(root, /\.(ts|mjs|cjs|sql)$/);
  const broken: string[] = [];
  let cited = 0;
  for (const file of files) {
    const text = await readFile(file, 'utf8');
    for (const [whole, folder, page, anchor] of text.matchAll(
      /\b(protocol|develop)\/([a-z-]+\.md)(?:#([\p{L}\p{N}_-]+))?/gu,
    )) {
      cited += 1;
      const home =
        folder === 'protocol' ? join(reference, 'protocol') : join(root, 'docs', 'develop');
      if (await isBroken(join(home, page ?? ''), anchor))
        broken.push(`${relative(root, file)}: ${whole}`);
    }
  }
  expect(broken).toEqual([]);
  expect(cited).toBeGreaterThan(500);
});

test('every link between pages has a target', async () => {
  const pages = await filesBelow(root, /\.md$/);
  const broken: string[] = [];
  for (const page of pages) {
    const text = (await readFile(page, 'utf8'))
      .replace(/^```[\s\S]*?^```/gm, '')
      .replace(/`[^`\n]*`/g, '');
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : join(dirname(page), decodeURIComponent(path));
      const isPage = file.endsWith('.md');
      const isWrong = isPage ? await isBroken(file, anchor) : !(await exists(file));
      if (isWrong) broken.push(`${relative(root, page)}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

const exists = (path: string): Promise<boolean> =>
  readdir(path).then(
    () => true,
    () =>
      readFile(path).then(
        () => true,
        () => false,
      ),
  );
