// Bundles the sources of a checkout if they changed since the last bundle, and prints the URL of
// its folder. Concurrent runs are safe: each bundles apart, and the first one is published. With
// the path of a folder it bundles into this one.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder, bundlesFolder, root } from './place.mjs';

/** Bundles that are kept: a running service loads modules from the one that it was started from. */
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
    // Sources that changed in this time may be in it.
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
    // Another process has published the same sources.
    if (!existsSync(path)) throw error;
  }
}

/** Removes all but the newest bundles, and what builds that were killed left behind. */
function removeOld() {
  const byAge = readdirSync(bundlesFolder)
    .map((name) => join(bundlesFolder, name))
    .map((one) => ({ one, madeAtMs: statSync(one, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.madeAtMs - a.madeAtMs);
  for (const { one } of byAge.slice(kept)) rmSync(one, { recursive: true, force: true });
}
