import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lexer, type MarkedToken, type Token, type Tokens } from 'marked';
import type { Plugin } from 'vite';
import { isGuideFile } from './guide-files.ts';
import { type GuideElement, type GuideNode, textOf } from './src/pages/guides/guide-tree.ts';

const docs = fileURLToPath(new URL('../../docs', import.meta.url));
const listModule = '/src/pages/guides/guide-list.ts';

/** Returns the files of the guides, by their paths below `docs`. */
export const guideFiles = (): string[] =>
  readdirSync(docs, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(sep).join('/'))
    .filter(isGuideFile)
    .toSorted();

const fileOf = (id: string): string => relative(docs, id).split(sep).join('/');

/** Returns whether a module is a guide. */
export const isGuideModule = (id: string): boolean => isGuideFile(fileOf(id));

/**
 * Returns the language of a guide and its path below `/console/docs`. The index has an empty path.
 */
export function placeOf(file: string): { language: 'en' | 'zh'; path: string } {
  return {
    language: file.startsWith('zh/') ? 'zh' : 'en',
    path: file.replace(/^zh\//, '').replace(/(?:\/?README)?\.md$/, ''),
  };
}

/**
 * Adds the guides to the bundle: each guide as a module, and the list of the guides. The Markdown
 * is parsed here, because the page's policy does not allow markup from text.
 */
export function addGuides(): Plugin {
  return {
    name: 'guides',
    load: (id) => {
      if (id.endsWith(listModule)) return listOfGuides();
      const file = fileOf(id);
      return isGuideFile(file) ? `export default ${JSON.stringify(readGuide(file).nodes)}` : null;
    },
  };
}

function listOfGuides(): string {
  const byPath = Map.groupBy(guideFiles(), (file) => placeOf(file).path);
  if (!byPath.has(''))
    throw new Error('docs/README.md is missing: the console contains the guides');
  const entries = [...byPath].map(([path, files]) => {
    const guides = files.map((file) => {
      const load = `() => import(${JSON.stringify(join(docs, file))})`;
      return `${placeOf(file).language}: { title: ${JSON.stringify(readGuide(file).title)}, load: ${load} }`;
    });
    return `${JSON.stringify(path)}: { ${guides} }`;
  });
  return `export const guides = { ${entries} };`;
}

/** Content of a guide. */
export interface ParsedGuide {
  title: string;
  nodes: GuideNode[];
}

/** Reads a guide. Throws the error of `parseGuide`. */
export const readGuide = (file: string): ParsedGuide =>
  parseGuide(file, readFileSync(join(docs, file), 'utf8'));

/**
 * Parses the Markdown of a guide. The first heading is its title, and is not among the nodes.
 * Throws if the guide has no title.
 */
export function parseGuide(file: string, markdown: string): ParsedGuide {
  const [first, ...nodes] = new GuideReader(file).read(markdown);
  if (typeof first !== 'object' || first.tag !== 'h1')
    throw new Error(`docs/${file} does not begin with a title`);
  return { title: textOf([first]), nodes };
}

/** Converts the Markdown of one guide. */
class GuideReader {
  readonly #file: string;
  readonly #place: ReturnType<typeof placeOf>;
  readonly #ids = new Map<string, number>();

  constructor(file: string) {
    this.#file = file;
    this.#place = placeOf(file);
  }

  read(text: string): GuideNode[] {
    return this.#nodes(lexer(text));
  }

  #nodes(tokens: readonly Token[]): GuideNode[] {
    return tokens.flatMap((token) => this.#node(known(token)));
  }

  #node(token: MarkedToken): GuideNode | GuideNode[] {
    switch (token.type) {
      case 'blockquote':
      case 'del':
      case 'em':
      case 'strong':
        return { tag: token.type, children: this.#nodes(token.tokens) };
      case 'br':
      case 'hr':
        return { tag: token.type };
      case 'code':
        return { tag: 'pre', to: token.lang ?? '', children: [token.text] };
      case 'codespan':
        return { tag: 'code', children: [token.text] };
      case 'heading':
        return this.#heading(token);
      case 'link':
        return this.#link(token);
      case 'list':
        return this.#list(token);
      case 'list_item':
        return { tag: 'li', children: this.#nodes(token.tokens) };
      case 'paragraph': {
        const children = this.#nodes(token.tokens);
        return children.length === 0 ? [] : { tag: 'p', children };
      }
      case 'table':
        return this.#table(token);
      case 'text':
        return token.tokens ? this.#nodes(token.tokens) : joinLines(token.text);
      case 'escape':
        return token.text;
      case 'checkbox':
        return token.checked ? '☑ ' : '☐ ';
      case 'html':
        return token.raw.startsWith('<!--') ? [] : token.text;
      // The pictures show the console itself.
      case 'image':
      case 'def':
      case 'space':
        return [];
    }
  }

  #heading({ depth, tokens }: Tokens.Heading): GuideElement {
    const children = this.#nodes(tokens);
    const anchor = anchorOf(textOf(children));
    const count = this.#ids.get(anchor) ?? 0;
    this.#ids.set(anchor, count + 1);
    return {
      tag: headings[depth - 1] ?? 'h6',
      id: count === 0 ? anchor : `${anchor}-${count}`,
      children,
    };
  }

  #list({ ordered, start, items }: Tokens.List): GuideElement {
    const children = this.#nodes(items);
    return ordered ? { tag: 'ol', start: Number(start), children } : { tag: 'ul', children };
  }

  #table({ header, rows }: Tokens.Table): GuideElement {
    const row = (cells: readonly Tokens.TableCell[]): GuideElement => ({
      tag: 'tr',
      children: cells.map(({ tokens }) => ({ tag: 'td', children: this.#nodes(tokens) })),
    });
    return { tag: 'table', children: [header, ...rows].map(row) };
  }

  /**
   * Links to other guides stay in the console. Links to other files become text with the path of
   * the file. The link to the same guide in the other language is left out.
   */
  #link({ href, tokens }: Tokens.Link): GuideNode[] {
    const children = this.#nodes(tokens);
    if (/^[a-z]+:/.test(href)) return [{ tag: 'a', to: href, children }];
    const [path = '', id] = href.split('#');
    const file = path === '' ? this.#file : posix.join(posix.dirname(this.#file), path);
    if (isGuideFile(file)) {
      const { path: to, language } = placeOf(file);
      if (to === this.#place.path && language !== this.#place.language) return [];
      return [{ tag: 'guide', to, ...(id !== undefined && { id }), children }];
    }
    const inRepository = posix.join('docs', file);
    if (textOf(children).includes(posix.basename(inRepository))) return children;
    const [open, close] = this.#place.language === 'zh' ? ['（', '）'] : [' (', ')'];
    return [...children, open, { tag: 'code', children: [inRepository] }, close];
  }
}

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'] as const;

/** Returns the anchor that GitHub gives a heading. Links of the guides contain these anchors. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** Removes line breaks between Han characters, because a browser shows a line break as a space. */
const joinLines = (text: string): string =>
  text.replaceAll(/(?<=[\p{Script=Han}，。；：、）”])\n(?=[\p{Script=Han}（“])/gu, '');

const tokenTypes = new Set([
  ...['blockquote', 'br', 'checkbox', 'code', 'codespan', 'def', 'del', 'em', 'escape', 'heading'],
  ...['hr', 'html', 'image', 'link', 'list', 'list_item', 'paragraph', 'space', 'strong', 'table'],
  'text',
]);

const isKnown = (token: Token): token is MarkedToken => tokenTypes.has(token.type);

function known(token: Token): MarkedToken {
  if (!isKnown(token)) throw new Error(`guides contain unknown Markdown: ${token.type}`);
  return token;
}
