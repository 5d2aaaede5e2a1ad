import { readdirSync } from 'node:fs';
import http from 'node:http';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

/** Modules that are started by their file names: entry points of processes and threads. */
const started = [
  'api/main',
  'api/services/accounts/passwords/bcrypt-worker',
  'dispatcher/main',
  'dispatcher/sending/worker',
  'ops/cli/main',
  'ops/console/build',
  'ops/local/postgres/migrate-worker',
  'ops/local/recovery/backup',
  'ops/local/recovery/restore',
  'ops/local/up',
  'ops/sandbox/main',
];
/** Folders whose modules are loaded by listing the folder. */
const read = { 'api/routes': /./, 'ops/sandbox/vendors': /\/index$/ };
/**
 * Packages that stay outside the bundle, because they contain native code, read files of their own
 * folder, or start threads.
 */
const apart = ['@node-rs/argon2', '@resvg/resvg-js', 'pino', 'piscina', 'svg-captcha'];
/** Paths of our modules below the root. */
const ours = /^(?:api|connectors|dispatcher|ops|shared)\//;
const moduleUrl = /^shared\/process\/module-url\.[jt]s$/;
const bundledModuleUrl = fileURLToPath(new URL('module-url.mjs', import.meta.url));

/**
 * Bundles the sources below `root`, or their compiled form, into few modules below `folder`.
 * Processes start faster and use less memory, because V8 keeps the text, names and positions of
 * every loaded module. Functions keep their names, so that stack traces can be read. Assets are not
 * copied: `import.meta.url` remains the path of the source.
 */
export async function bundle(root, folder) {
  const type = readdirSync(join(root, 'api')).includes('main.ts') ? '.ts' : '.js';
  const found = Object.entries(read).flatMap(([path, wanted]) =>
    modulesBelow(root, path, type).filter((name) => wanted.test(name)),
  );
  const build = await rolldown({
    cwd: root,
    platform: 'node',
    logLevel: 'silent',
    input: Object.fromEntries(
      [...started, ...found].map((name) => [name, join(root, name + type)]),
    ),
    external: (id) => apart.some((name) => id === name || id.startsWith(`${name}/`)),
    plugins: [places(root, folder), lightHttp],
  });
  const names = { entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' };
  await build.write({ dir: folder, format: 'esm', comments: false, ...names });
  await build.close();
}

function modulesBelow(root, path, type) {
  return readdirSync(join(root, path), { recursive: true })
    .filter((name) => extname(name) === type)
    .map((name) => toUrl(join(path, name.slice(0, -type.length))));
}

/** Sets `import.meta.url` of each of our modules to the path of its source. */
function places(root, folder) {
  const placeOf = (id) => toUrl(relative(root, id));
  return {
    name: 'places',
    resolveId(id, importer) {
      const isReplaced =
        importer && id.startsWith('.') && moduleUrl.test(placeOf(join(importer, '..', id)));
      return isReplaced ? bundledModuleUrl : null;
    },
    transform(code, id) {
      const place = placeOf(id);
      if (id === bundledModuleUrl || !ours.test(place) || !code.includes('import.meta.url'))
        return null;
      const url = `new URL("__ROOT__/${place}", import.meta.url).href`;
      return { code: code.replaceAll('import.meta.url', url), map: null };
    },
    renderChunk(code, { fileName }) {
      const toBundle = '../'.repeat(fileName.split('/').length - 1) || './';
      const toRoot = toBundle + toUrl(relative(folder, root));
      return {
        code: code.replaceAll('__ROOT__', toRoot).replaceAll('__BUNDLE__', toBundle),
        map: null,
      };
    },
    generateBundle(_options, files) {
      for (const file of Object.values(files))
        if (file.type === 'chunk') file.code = escapeBeyondAscii(file.code);
    },
  };
}

/** Members of `node:http` whose access loads Node's `fetch` client. */
const heavy = new Set(['CloseEvent', 'MessageEvent', 'WebSocket']);
const lightHttpName = 'light-http';

/**
 * Replaces `import` of `node:http` with an import of only the light members. A normal `import`
 * reads all members, and some of them load the `fetch` client. The client takes several megabytes
 * in each process and thread.
 */
const lightHttp = {
  name: 'light-http',
  resolveId(id, _importer, { kind }) {
    return kind === 'import-statement' && /^(?:node:)?http$/.test(id) ? lightHttpName : null;
  },
  load(id) {
    if (id !== lightHttpName) return null;
    const names = Object.keys(http).filter((name) => !heavy.has(name));
    return `const http = process.getBuiltinModule('node:http');
export default http;
export const { ${names.join(', ')} } = http;`;
  },
};

const toUrl = (path) => path.split(sep).join('/');

/**
 * Escapes non-ASCII characters. V8 stores a text that contains such characters with two bytes per
 * character.
 */
function escapeBeyondAscii(code) {
  return code.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
