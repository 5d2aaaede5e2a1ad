import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { build, type Plugin, type Rolldown } from 'vite';
import type { ConsoleBuild } from '../../api/services/server/console-files.ts';
import { addGuides, isGuideModule } from './guides.ts';

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

/** Modules that several pages use: libraries, components, API calls and the page frame. */
const sharedModules =
  /node_modules\/(?:@base-ui|@floating-ui|@tanstack|i18next|react|react-dom|react-i18next|scheduler)\/|\/src\/(?:api\/|draft\/|search\.ts|text\/(?!.*json))|\/ops\/client\/|\/shared\/domain\/(?!texts\/.*json)|\/src\/kit\/(?!.*chart)|\/pages\/(?:home|login|missing|page-failure|shell)(?!.*(?:dialog|entries))|preload-helper|rolldown.runtime/;

/** Modules that the first page imports, directly or not. */
const firstModules = new Set<string>();

const [folder, digest] = process.argv.slice(2);
if (folder === undefined || digest === undefined)
  throw new Error('usage: bundle.ts <folder> <digest>');

await build({
  root,
  base: '/console/',
  configFile: false,
  logLevel: 'warn',
  plugins: [react(), orderLayers(), loadCatalogueLazily(), addGuides()],
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
    // The shared modules form two files: `base` has what the first page needs, `pages` the rest.
    // Otherwise, a page would need about thirty requests for small files.
    chunkSizeWarningLimit: 1000,
    rolldownOptions: {
      output: {
        chunkFileNames: ({ facadeModuleId }) =>
          `assets/${prefixOf(facadeModuleId ?? '')}[name]-[hash].js`,
        codeSplitting: {
          groups: [
            { name: nameOfFirstFile, debugName: 'base', test: sharedModules, priority: 1 },
            { name: 'pages', test: sharedModules },
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

/** Returns the beginning of the file name of a module, so that no other file has the same name. */
function prefixOf(id: string): string {
  if (isGuideModule(id)) return 'guide-';
  return id.includes('/domain/texts/') ? 'catalogue-' : '';
}

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
 * Replaces the texts of the shared catalogue with objects that `src/text/catalogue-texts.ts` fills
 * on demand.
 */
function loadCatalogueLazily(): Plugin {
  const texts: Readonly<Record<string, string>> = {
    './en.json': 'english-catalogue.ts',
    './zh.json': 'chinese-catalogue.ts',
  };
  return {
    name: 'catalogue-later',
    enforce: 'pre',
    resolveId: (source, importer = '') => {
      const file = importer.endsWith('/domain/texts/catalogue.ts') ? texts[source] : undefined;
      return file === undefined ? null : join(root, 'src', 'text', file);
    },
  };
}

/** Returns the file of a shared module that the first page imports. Returns null for others. */
function nameOfFirstFile(id: string, context: Rolldown.ChunkingContext): string | null {
  if (firstModules.size === 0) addImports(join(root, 'src', 'main.tsx'), context);
  return firstModules.has(id) ? 'base' : null;
}

function addImports(id: string, context: Rolldown.ChunkingContext): void {
  if (firstModules.has(id)) return;
  firstModules.add(id);
  for (const imported of context.getModuleInfo(id)?.importedIds ?? [])
    addImports(imported, context);
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
