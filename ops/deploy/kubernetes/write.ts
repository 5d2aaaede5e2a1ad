import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { listFiles } from './files.ts';

for (const folder of ['base', 'overlays'])
  await rm(new URL(folder, import.meta.url), { recursive: true, force: true });
for (const [path, text] of listFiles()) {
  const file = new URL(path, import.meta.url);
  await mkdir(dirname(file.pathname), { recursive: true });
  await writeFile(file, text);
}
