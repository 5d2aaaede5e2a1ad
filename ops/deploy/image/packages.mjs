import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join, resolve } from 'node:path';

/**
 * Removes the packages in `folder` whose code is in the bundle. Keeps packages that the bundle
 * loads by name, and their dependencies. Throws if a kept package cannot be loaded.
 */
export function removeBundledPackages(folder) {
  const root = resolve(folder);
  const modules = join(root, 'node_modules');
  const { dependencies } = readJson(join(root, 'package.json'));
  const text = readdirSync(join(root, 'bundle'), { recursive: true })
    .filter((name) => extname(name) === '.js')
    .map((name) => readFileSync(join(root, 'bundle', name), 'utf8'))
    .join('\n');
  const named = Object.keys(dependencies).filter((name) =>
    new RegExp(`(?:\\(|from |import )["'\`]${name}["'\`/]`).test(text),
  );
  const kept = new Set();
  for (const name of named) keep({ root, from: root, name, kept });
  for (const name of packagesIn(modules))
    if (!kept.has(join(modules, name))) rmSync(join(modules, name), { recursive: true });
  const require = createRequire(join(root, 'package.json'));
  for (const name of named) if (existsSync(join(modules, name))) require(name);
}

/**
 * Adds the folder of a package and of its dependencies. Ignores packages that are not installed,
 * because they are for other platforms.
 */
function keep({ root, from, name, kept }) {
  const folder = find({ root, from, name });
  if (folder === undefined || kept.has(folder)) return;
  kept.add(folder);
  const { dependencies, optionalDependencies, peerDependencies } = readJson(
    join(folder, 'package.json'),
  );
  for (const needed of Object.keys({
    ...dependencies,
    ...optionalDependencies,
    ...peerDependencies,
  }))
    keep({ root, from: folder, name: needed, kept });
}

/** Finds a package from a folder upwards, as Node does. */
function find({ root, from, name }) {
  const folder = join(from, 'node_modules', name);
  if (existsSync(folder)) return folder;
  return from === root ? undefined : find({ root, from: dirname(from), name });
}

function packagesIn(modules) {
  return readdirSync(modules)
    .filter((name) => !name.startsWith('.'))
    .flatMap((name) =>
      name.startsWith('@')
        ? readdirSync(join(modules, name)).map((part) => join(name, part))
        : [name],
    );
}

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));
