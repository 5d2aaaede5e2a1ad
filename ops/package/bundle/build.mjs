// Bundles the sources of a checkout if they changed since the last bundle. Prints the URL of the
// bundle's folder. Concurrent runs are safe: each run bundles into its own folder, and the first
// finished bundle is published. With a folder path as argument, it bundles into that folder.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder, bundlesFolder, root } from './place.mjs';

/**
 * Number of bundles to keep. A running service still loads modules from the bundle it started from.
 */
const kept = 4;

const [, , given] = process.argv;
const folder = given === undefined ? bundleFolder() : pathToFileURL(join(resolve(given), sep));
const path = fileURLToPath(folder);
if (given !== undefined) {
  const { bundle } = await import('./bundler.mjs');
  await bundle(root, resolve(given));
} else if (!existsSync(path)) {
  const { bundle } = await import('./bundler.mjs');
  const temporary = `${path.replace(/[/\\]$/, '')}.${randomBytes(4).toString('hex')}`;
  try {
    await bundle(root, temporary);
    // If sources changed during the bundling, the bundle may contain the changes. It must not be
    // published under the old hash.
    if (bundleFolder().href !== folder.href) throw new Error('the sources changed');
    publish(temporary);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  removeOld();
}
process.stdout.write(`${folder.href}\n`);

function publish(temporary) {
  try {
    renameSync(temporary, path);
  } catch (error) {
    // Another process has already published a bundle of the same sources.
    if (!existsSync(path)) throw error;
  }
}

/** Removes all but the newest bundles, and the remains of killed builds. */
function removeOld() {
  const byAge = readdirSync(bundlesFolder)
    .map((name) => join(bundlesFolder, name))
    .map((one) => ({ one, madeAtMs: statSync(one, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.madeAtMs - a.madeAtMs);
  for (const { one } of byAge.slice(kept)) rmSync(one, { recursive: true, force: true });
}
