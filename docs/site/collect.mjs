// Copies the pages of docs/ and their pictures into pages/: VitePress finds its modules only from
// pages below its own package.
import { cpSync, readdirSync, rmSync } from 'node:fs';

const docs = new URL('../', import.meta.url);
const pages = new URL('pages/', import.meta.url);
rmSync(pages, { recursive: true, force: true });
for (const { name, parentPath } of readdirSync(docs, { recursive: true, withFileTypes: true })) {
  const path = `${parentPath}/${name}`.slice(docs.pathname.length).replace(/^\//, '');
  if (/\.(?:md|png)$/.test(path) && !path.startsWith('site/'))
    cpSync(new URL(path, docs), new URL(path, pages));
}
