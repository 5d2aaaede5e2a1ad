import { mkdir, writeFile } from 'node:fs/promises';
import { pages, referenceFolder } from './pages.ts';

// `npm run docs`: writes the pages of docs/reference that come from the code.
await mkdir(referenceFolder, { recursive: true });
for (const [name, render] of Object.entries(pages)) {
  await writeFile(new URL(name, referenceFolder), await render());
  process.stdout.write(`docs/reference/${name}\n`);
}
