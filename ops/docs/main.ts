import { mkdir, writeFile } from 'node:fs/promises';
import { docsFolder, pages } from './pages.ts';

// Entry point of `npm run docs`: writes the files in docs/ that are generated from the code.
await mkdir(new URL('reference/', docsFolder), { recursive: true });
for (const [name, render] of Object.entries(pages)) {
  await writeFile(new URL(name, docsFolder), await render());
  process.stdout.write(`docs/${name}\n`);
}
