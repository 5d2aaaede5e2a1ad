import { expect, test } from 'vitest';
import { guideFiles, parseGuide, placeOf, readGuide } from '../../ops/console/guides.ts';
import {
  type GuideElement,
  type GuideNode,
  textOf,
} from '../../ops/console/src/pages/guides/guide-tree.ts';

/** Returns all elements of a tree. */
const elementsOf = (nodes: readonly GuideNode[] = []): GuideElement[] =>
  nodes.flatMap((node) => (typeof node === 'string' ? [] : [node, ...elementsOf(node.children)]));

const guides = new Map(guideFiles().map((file) => [file, readGuide(file)]));

/** Returns the guide that a reader of a language sees at a path of the console. */
const shownAt = (path: string, language: 'en' | 'zh') => {
  const at = (wanted: 'en' | 'zh') =>
    [...guides].find(([file]) => {
      const place = placeOf(file);
      return place.path === path && place.language === wanted;
    })?.[1];
  return at(language) ?? at('en');
};

const parse = (markdown: string, file = 'operate/redrive.md') =>
  parseGuide(file, `# Title\n\n${markdown}`).nodes;

test('the guides are in the console, without the reference and the pages for contributors', () => {
  const files = [...guides.keys()];
  expect(files).toEqual(expect.arrayContaining(['README.md', 'operate/redrive.md', 'zh/faq.md']));
  expect(files.filter((file) => /^(?:develop|reference|site)\//.test(file))).toEqual([]);
  expect(guides.get('zh/README.md')?.title).toBe('文档');
});

test.each([...guides.keys()])('the links of %s have targets', (file) => {
  const { language } = placeOf(file);
  for (const { tag, to = '', id } of elementsOf(guides.get(file)?.nodes)) {
    if (tag === 'a') expect(to).toMatch(/^(?:https?|mailto):/);
    if (tag !== 'guide') continue;
    const target = shownAt(to, language);
    expect(target, to).toBeDefined();
    if (id !== undefined)
      expect(
        elementsOf(target?.nodes).map((one) => one.id),
        `${to}#${id}`,
      ).toContain(id);
  }
});

test.each([...guides.keys()])('the text of %s contains no markup', (file) => {
  const { nodes = [] } = guides.get(file) ?? {};
  const text = (all: readonly GuideNode[]): string =>
    all
      .map((node) => {
        if (typeof node === 'string') return node;
        return node.tag === 'code' || node.tag === 'pre' ? '' : text(node.children ?? []);
      })
      .join('');
  expect(text(nodes)).not.toMatch(/\*\*|`|\]\(|<!--|&\w+;|<\/?(?:br|p|a|b|table|details)\b/);
});

test('a link to a guide stays in the console, with its anchor', () => {
  expect(parse('[sending](../sending.md#quiet-hours), [here](#a), [all](../README.md)')).toEqual([
    {
      tag: 'p',
      children: [
        { tag: 'guide', to: 'sending', id: 'quiet-hours', children: ['sending'] },
        ', ',
        { tag: 'guide', to: 'operate/redrive', id: 'a', children: ['here'] },
        ', ',
        { tag: 'guide', to: '', children: ['all'] },
      ],
    },
  ]);
});

test('a link to another file becomes its path, and a link to the other language is left out', () => {
  const text = (markdown: string, file?: string) => textOf(parse(markdown, file));
  expect(text('See [errors](../reference/errors.md#codes).')).toBe(
    'See errors (docs/reference/errors.md).',
  );
  expect(text('见[错误码](../reference/errors.md)。', 'zh/faq.md')).toBe(
    '见错误码（docs/reference/errors.md）。',
  );
  expect(text('See [`ops/x.conf`](../../ops/x.conf).')).toBe('See ops/x.conf.');
  expect(parse('[中文](../zh/operate/redrive.md)')).toEqual([]);
});

test('every kind of Markdown has an element', () => {
  const markdown = [
    '## Two `words`',
    '## Two words',
    '1. first\n2. second\n   - inner',
    '> a <name> & **b** *c* ~~d~~  \nnext \\*',
    '```sh\nls\n```',
    '| a | b |\n|---|---|\n| 1 | `2` |',
    '- [x] done',
    '---\n\n![picture](x.png)\n\n<!-- note -->',
    '第一行\n第二行',
  ].join('\n\n');
  const nodes = parse(markdown);
  expect(nodes).toMatchObject([
    { tag: 'h2', id: 'two-words' },
    { tag: 'h2', id: 'two-words-1' },
    { tag: 'ol', start: 1, children: [{}, { children: ['second', { tag: 'ul' }] }] },
    { tag: 'blockquote' },
    { tag: 'pre', to: 'sh', children: ['ls'] },
    { tag: 'table', children: [{ children: [{}, {}] }, { children: [{}, {}] }] },
    { tag: 'ul' },
    { tag: 'hr' },
    { tag: 'p', children: ['第一行第二行'] },
  ]);
  expect(textOf(nodes.slice(3, 4))).toBe('a <name> & b c dnext *');
  expect(textOf(nodes.slice(6, 7))).toBe('☑ done');
});

test('a guide without a title is refused', () => {
  expect(() => parseGuide('faq.md', 'Text')).toThrow('docs/faq.md does not begin with a title');
});
