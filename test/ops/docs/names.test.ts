import { execFile } from 'node:child_process';
import { access, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { requestSchema } from '../../../api/openapi/json-schema.ts';
import { pushRecord } from '../../../api/replies/pushes.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import { effectiveOptions } from '../../../shared/domain/apps/app.ts';
import { currentPart } from './pages.ts';

const root = new URL('../../../', import.meta.url);
const read = (name: string) => readFile(new URL(name, root), 'utf8');
const run = promisify(execFile);
/** All documents, and the rules and panels of metrics. */
const files = (
  await run('git', ['ls-files', '*.md', 'ops/monitoring/*.yml', 'ops/monitoring/*.json'], {
    cwd: root,
  })
).stdout
  .trim()
  .split('\n');
const texts = await Promise.all(
  files.map(async (name) => ({ name, text: currentPart(await read(name)) })),
);
const pages = texts.filter(({ name }) => name.endsWith('.md'));

/** Returns the matches of `pattern` that `isKnown` refuses, with their page. */
async function refused(
  those: typeof texts,
  pattern: RegExp,
  isKnown: (word: string) => boolean | Promise<boolean>,
): Promise<string[]> {
  const found = those.flatMap(({ name, text }) =>
    [...new Set([...text.matchAll(pattern)].map(([, word = '']) => word))].map((word) => ({
      name,
      word,
    })),
  );
  const known = await Promise.all(found.map(({ word }) => isKnown(word)));
  return found.filter((_, at) => !known[at]).map(({ name, word }) => `${name}: ${word}`);
}

/** True if a file or folder exists. The extension of a module may be omitted. */
async function exists(path: string): Promise<boolean> {
  const found = await Promise.allSettled(
    [path, `${path}.ts`].map((each) => access(new URL(each, root))),
  );
  return found.some(({ status }) => status === 'fulfilled');
}

/** Expands a path with `{a,b}` into several paths. */
function expanded(path: string): string[] {
  const [, head = '', list = '', tail = ''] = path.match(/^([^{]*)\{([^}]*)\}(.*)$/) ?? [];
  return list === ''
    ? [path]
    : list.split(',').flatMap((part) => expanded(`${head}${part}${tail}`));
}

describe('every document names only existing', () => {
  test('metrics', async () => {
    const known = new Set((await read('docs/reference/metrics.md')).match(/carillon_\w+/g));
    // Name of a database table.
    known.add('carillon_migration');
    const isKnown = (name: string) =>
      known.has(name) || known.has(name.replace(/_(bucket|sum|count)$/, ''));
    expect(await refused(texts, /\b(carillon_[a-z0-9_]+[a-z0-9])\b/g, isKnown)).toEqual([]);
  });

  test('environment variables', async () => {
    const page = await read('docs/reference/configuration.md');
    const known = new Set([...page.matchAll(/^\| `(\w+)`/gm)].map(([, name = '']) => name));
    // Variable of the tests.
    known.add('CARILLON_TEST_CITUS');
    const beginnings = new Set([...known].map((name) => name.split('_')[0]));
    const isKnown = (name: string) => known.has(name) || !beginnings.has(name.split('_')[0]);
    expect(known.size).toBeGreaterThan(25);
    expect(await refused(pages, /`([A-Z]+(?:_[A-Z]+)+)(?==|`)/g, isKnown)).toEqual([]);
  });

  test('files and folders', async () => {
    const path = /`((?:api|connectors|dispatcher|docs|ops|shared|test)\/[\w./{},-]+)`/g;
    // A path may be relative to the folder of the page.
    const found = texts.map(({ name, text }) => ({
      name,
      text,
      folder: name.replace(/[^/]*$/, ''),
    }));
    const missing = await Promise.all(
      found.map(({ name, text, folder }) =>
        refused([{ name, text }], path, async (one) => {
          const all = await Promise.all(
            expanded(one).map(
              async (each) => (await exists(each)) || (await exists(`${folder}${each}`)),
            ),
          );
          return all.every(Boolean);
        }),
      ),
    );
    expect(missing.flat()).toEqual([]);
  });

  test('modules, by their name alone', async () => {
    const modules = (
      await run('git', ['ls-files', '*.ts', '*.tsx', '*.mjs', '*.cjs'], { cwd: root })
    ).stdout;
    const known = new Set(
      modules
        .trim()
        .split('\n')
        .map((path) => path.replace(/.*\//, '')),
    );
    const module = /`(?:[\w./-]*\/)?([\w.-]+\.(?:ts|tsx|mjs|cjs))`/g;
    // The readers of the pages Tracing and Webhooks write these files.
    known.add('tracing.mjs').add('receiver.mjs');
    expect(await refused(pages, module, (name) => known.has(name))).toEqual([]);
  });
});

/** Pages about servers that Carillon calls. */
const ofOthers = /\/(apns|fcm|huawei|honor|xiaomi|oppo|vivo|meizu|gateways)\.md$/;
/** Calls that a function host accepts (protocol/functions.md#host-protocol). */
const ofHosts = /^POST \/1\.1\/functions\/(<Class>|onVerified\/)|__engine/;

/**
 * True if a path on a page matches a route. `<id>` and `:id` match any segment, `…` matches any
 * rest.
 */
function isPathOf(route: string, written: string): boolean {
  const [parts, wanted] = [route.split('/'), written.split('/')];
  const isOpen = written.endsWith('…');
  if (isOpen ? parts.length < wanted.length : parts.length !== wanted.length) return false;
  const isAny = (part: string) => /^(:|<|…)/.test(part);
  return wanted.every((part, at) => isAny(part) || isAny(parts[at] ?? '') || part === parts[at]);
}

test('every document names only existing calls of the API', async () => {
  const routes = (await loadRoutes()).flatMap(({ method, paths }) =>
    paths.map((path) => ({ method, path })),
  );
  const isKnown = (call: string) => {
    const [method = '', written = ''] = call.split(' ');
    const [path = ''] = written.split('?');
    return (
      ofHosts.test(call) ||
      path === '/console' ||
      ['', '/1.1', '/console/api', ...(path.startsWith('/<') ? ['/1.1/installations'] : [])].some(
        (prefix) =>
          routes.some((route) => route.method === method && isPathOf(route.path, prefix + path)),
      )
    );
  };
  expect(isKnown('PUT /1.1/installations')).toBe(false);
  expect(isKnown('GET /apps/:appId/pushs')).toBe(false);
  const call = /`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s]+)/g;
  expect(
    await refused(
      pages.filter(({ name }) => !ofOthers.test(name)),
      call,
      isKnown,
    ),
  ).toEqual([]);
});

test('the reference names every option, and the admin API only existing ones', async () => {
  const options = Object.keys(effectiveOptions('commercial', {}));
  const reference = await read('docs/reference/app-options.md');
  expect(options.filter((name) => !reference.includes(`| \`${name}\` |`))).toEqual([]);
  const rules = await read('docs/reference/protocol/admin-api.md');
  const table = rules.slice(
    rules.indexOf('| options | rules |'),
    rules.indexOf('## Platform checks'),
  );
  const named = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
  );
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !options.includes(name))).toEqual([]);
});

test('the rules of push records name every member of a record', async () => {
  const page = await read('docs/reference/protocol/push-records.md');
  const table = page.slice(page.indexOf('## Record fields'), page.indexOf('## Status'));
  const names = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
  );
  expect(names.sort()).toEqual(Object.keys(requestSchema(pushRecord).properties ?? {}).sort());
});
