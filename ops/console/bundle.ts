import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { build, type Plugin } from 'vite';
import type { ConsoleBuild } from '../../api/services/server/console-files.ts';

/**
 * Bundles the console into a folder. `build.ts` runs this module in a separate process: `node
 * bundle.ts <folder> <digest>`.
 */
// Lowers its priority, because the service starts at the same time and is more important.
setPriority(10);

const root = fileURLToPath(new URL('.', import.meta.url));
const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Smaller files do not benefit from compression. */
const compressFromBytes = 1024;

/**
 * Modules that most pages use: libraries, components, API calls, texts and the page frame. Charts
 * and editors are loaded with the pages that use them.
 */
const sharedModules =
  /node_modules\/(?:@base-ui|@floating-ui|@tanstack|i18next|react|react-dom|react-i18next|scheduler)\/|\/src\/(?:api\/|search\.ts|text\/(?!zh\.json))|\/ops\/client\/|\/shared\/domain\/(?!texts\/(?:zh|credentials)\.json)|\/src\/kit\/(?!.*chart)|\/pages\/(?:home|login|missing|page-failure|shell)(?!.*(?:dialog|entries))|preload-helper|rolldown.runtime/;

const [folder, digest] = process.argv.slice(2);
if (folder === undefined || digest === undefined)
  throw new Error('usage: bundle.ts <folder> <digest>');

await build({
  root,
  base: '/console/',
  configFile: false,
  logLevel: 'warn',
  plugins: [react(), orderLayers(), loadChineseLazily()],
  define: { __BUILD__: JSON.stringify(digest) },
  build: {
    outDir: folder,
    emptyOutDir: true,
    target: 'es2024',
    // The first browser versions that support light-dark().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // The page's content security policy allows no inline scripts.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // The shared modules form one file. Otherwise, a page would need about thirty requests for
    // small files.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'base', test: sharedModules },
            { name: 'zh', test: /\/text\/zh\.json|\/texts\/zh\.json/ },
          ],
        },
      },
    },
  },
});
// Open pages poll this file to detect a newer build.
writeFileSync(join(folder, 'build.json'), JSON.stringify({ digest }));
const files = listFiles(folder);
writeFileSync(join(folder, 'files.json'), JSON.stringify(files));

/**
 * Declares the order of the cascade layers in every style sheet, because the browser may load style
 * sheets in any order.
 */
function orderLayers(): Plugin {
  return {
    name: 'order-layers',
    generateBundle: (_, bundle) => {
      for (const file of Object.values(bundle))
        if (file.type === 'asset' && file.fileName.endsWith('.css'))
          file.source = `@layer base,kit,page;${file.source}`;
    },
  };
}

/**
 * Replaces the Chinese half of the shared catalogue with `src/text/chinese.ts`, which loads it on
 * demand.
 */
function loadChineseLazily(): Plugin {
  return {
    name: 'chinese-later',
    enforce: 'pre',
    resolveId: (source, importer = '') =>
      source === './zh.json' && importer.endsWith('/domain/texts/catalogue.ts')
        ? join(root, 'src', 'text', 'chinese.ts')
        : null,
  };
}

/** Lists the files of the bundle. Writes a compressed copy of each large file. */
function listFiles(inside: string): ConsoleBuild['files'] {
  return readdirSync(inside, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && types[extname(entry.name)] !== undefined)
    .map((entry) => {
      const file = join(entry.parentPath, entry.name);
      const path = relative(inside, file).split(sep).join('/');
      return { path, type: types[extname(entry.name)] ?? '', isCompressed: compress(file) };
    });
}

function compress(file: string): boolean {
  const bytes = readFileSync(file);
  if (bytes.length < compressFromBytes) return false;
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
  return true;
}
