import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { chinese, english } from '../../../docs/site/.vitepress/sidebar.ts';

const docs = new URL('../../../docs/', import.meta.url);
const read = (name: string) => readFile(new URL(name, docs), 'utf8');
/** Pages of docs/. Those of the protocol have a table of contents of their own. */
const pages = (await readdir(docs, { recursive: true }))
  .filter((name) => name.endsWith('.md') && !/^site\/|^(zh\/)?README\.md$/.test(name))
  .filter((name) => !/^reference\/protocol\/(?!README)/.test(name))
  .sort();
const ofLanguage = (isChinese: boolean) =>
  pages.filter((name) => name.startsWith('zh/') === isChinese);

/** Address of a page on the site. */
const addressOf = (name: string) => `/${name.replace(/(README)?\.md$/, '')}`;
const linksOf = (groups: ReturnType<typeof english>) =>
  groups.flatMap(({ items }) => items.map(({ link }) => link));

const leadsTo = (contents: string, name: string) => contents.includes(`](${name})`);

describe('the table of contents has every page', () => {
  test('in docs/README.md', async () => {
    const contents = await read('README.md');
    expect(pages.length).toBeGreaterThan(60);
    expect(ofLanguage(false).filter((name) => !leadsTo(contents, name))).toEqual([]);
  });

  test('in Chinese, in docs/zh/README.md', async () => {
    const contents = await read('zh/README.md');
    const names = ofLanguage(true).map((name) => name.slice('zh/'.length));
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !leadsTo(contents, name))).toEqual([]);
  });

  test('in the sidebar of the site, once', () => {
    const links = linksOf(english());
    expect(ofLanguage(false).map(addressOf).sort()).toEqual([...links].sort());
  });

  test('in the Chinese sidebar: the translation, or the English page', () => {
    const links = linksOf(chinese());
    expect(links).toHaveLength(linksOf(english()).length);
    expect(ofLanguage(true).filter((name) => !links.includes(addressOf(name)))).toEqual([]);
    expect(links.filter((link) => !pages.some((name) => addressOf(name) === link))).toEqual([]);
  });
});

describe('the sidebar and docs/README.md have the same groups', () => {
  test.each([
    ['README.md', english],
    ['zh/README.md', chinese],
  ])('%s', async (name, groups) => {
    const rows = [...(await read(name)).matchAll(/^\| \*\*(.+?)\*\* \|/gm)].map(([, task]) => task);
    for (const { text } of groups())
      expect(
        rows.some((task) => task?.startsWith(text)),
        text,
      ).toBe(true);
  });
});

/** Pages that are read from case to case, or that show figures. */
const isNoGuide = /^(zh\/)?(faq|limitations|glossary|performance|rivals)\.md$/;
const guides = pages.filter(
  (name) => /^(zh\/)?(operate\/)?[\w-]+\.md$/.test(name) && !isNoGuide.test(name),
);

test.each(guides)(
  '%s begins with what the reader will have, and how long it takes',
  async (name) => {
    const start = (await read(name)).split('\n').slice(0, 16).join('\n');
    const marks = name.startsWith('zh/') ? ['完成后', '时间'] : ['At the end', 'Time'];
    for (const mark of marks) expect(start, name).toContain(`**${mark}**`);
  },
);
