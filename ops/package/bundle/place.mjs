// Plain JavaScript, because ops/cli/carillon.mjs imports it before any other module.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the checkout. */
export const root = fileURLToPath(new URL('../../..', import.meta.url));
/** Folder of all bundles of a checkout. There is one bundle per state of the sources. */
export const bundlesFolder = join(root, 'node_modules', '.cache', 'bundle');

const folders = ['api', 'connectors', 'dispatcher', 'ops', 'shared'];
/** Folders below `ops` that contain no bundled module. */
const others = new Set(['bench', 'check', 'deploy', 'docs', 'functions-example', 'monitoring']);
const types = new Set(['.ts', '.mjs', '.json']);

/** Returns the URL of the bundle's folder for the current sources. The folder may not exist yet. */
export function bundleFolder() {
  const hash = createHash('sha256');
  for (const file of [...folders.flatMap(sourcesBelow), 'package-lock.json']) {
    const bytes = readFileSync(join(root, file));
    hash.update(`${file}\n${bytes.length}\n`).update(bytes);
  }
  return new URL(
    `../../../node_modules/.cache/bundle/${hash.digest('hex').slice(0, 16)}/`,
    import.meta.url,
  );
}

function sourcesBelow(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && types.has(extname(entry.name)))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((file) => !isOther(file))
    .sort();
}

function isOther(file) {
  const [first, second] = file.split('/');
  return (
    first === 'ops' &&
    (others.has(second) || (second === 'console' && file !== 'ops/console/build.ts'))
  );
}
