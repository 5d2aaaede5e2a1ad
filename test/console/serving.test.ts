import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { get as httpGet, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { buildConsole, buildConsoleSomewhere } from '../../ops/console/build.ts';
import { useTestApi } from '../support/test-api.ts';

/**
 * Limit on the compressed scripts, styles and texts of one language that the first page loads, in
 * kB.
 */
const maxEntryKb = 230;

const folder = mkdtempSync(join(tmpdir(), 'carillon-console-'));
const other = mkdtempSync(join(tmpdir(), 'carillon-console-'));
afterAll(async () => {
  await rm(folder, { recursive: true });
  await rm(other, { recursive: true });
});

const get = (url: string, path: string, headers: Record<string, string> = {}) =>
  fetch(url + path, { headers: { 'accept-encoding': 'identity', ...headers } });

/** Requests a path unchanged. Returns the status and the bytes as they were sent. */
const sentBytes = (url: string, path: string, headers: OutgoingHttpHeaders = {}) =>
  new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: Buffer }>(
    (resolve, reject) => {
      const { hostname, port } = new URL(url);
      const request = httpGet({ hostname, port, path, headers }, async (response) =>
        resolve({
          status: response.statusCode,
          headers: response.headers,
          body: await buffer(response),
        }),
      );
      request.once('error', reject);
    },
  );

describe('before the console is built', () => {
  const api = useTestApi({ consoleFolders: [other] });

  test('its pages return 503 and reload themselves, and the API works', async () => {
    const english = await get(api.url, '/console');
    expect(english.status).toBe(503);
    expect(Object.fromEntries(english.headers)).toMatchObject({ 'retry-after': '1', refresh: '1' });
    expect(await english.text()).toContain('npx carillon console build');
    const chinese = await get(api.url, '/console/apps', { 'accept-language': 'zh-CN' });
    expect(await chinese.text()).toContain('控制台正在构建');
    expect((await api.request('GET', '/console/api/apps', { admin: true })).status).toBe(200);
  });
});

describe('the built console', () => {
  const api = useTestApi({ consoleFolders: [other, folder] });
  beforeAll(async () => {
    const [first, second] = await Promise.all([buildConsole(folder), buildConsole(folder)]);
    expect(first?.digest).toBe(second?.digest);
    expect((await get(api.url, '/console')).status).toBe(200);
  });
  const assetsOf = async () => {
    const html = await (await get(api.url, '/console')).text();
    return [...html.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(
      ([, path = '']) => path,
    );
  };

  test('is one build after two concurrent builds, and is not built again', async () => {
    expect(readdirSync(folder).filter((name) => name !== 'current.json')).toHaveLength(1);
    expect(await buildConsole(folder)).toMatchObject({ isNew: false });
  });

  // Root can write everywhere except in such a file system.
  test.skipIf(!existsSync('/sys'))(
    'is in the data directory if its folder is not writable',
    async () => {
      const dataDir = mkdtempSync(join(tmpdir(), 'carillon-console-'));
      try {
        const { folder: built, isNew } = await buildConsoleSomewhere(
          dataDir,
          undefined,
          '/sys/carillon-console',
        );
        expect([built, isNew]).toEqual([join(dataDir, 'console'), true]);
      } finally {
        await rm(dataDir, { recursive: true });
      }
    },
  );

  test('has its index at every path without a file, revalidated at each visit', async () => {
    const page = await get(api.url, '/console');
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('cache-control')).toBe('no-cache');
    const html = await page.text();
    expect(await (await get(api.url, '/console/apps/an-app/pushes/1?tab=failures')).text()).toBe(
      html,
    );
    const etag = page.headers.get('etag') ?? '';
    expect((await sentBytes(api.url, '/console', { 'if-none-match': etag })).status).toBe(304);
    expect((await fetch(`${api.url}/console`, { method: 'HEAD' })).status).toBe(200);
    const { digest } = z
      .object({ digest: z.string() })
      .parse(await (await get(api.url, '/console/build.json')).json());
    expect((await api.request('GET', '/console/api/meta', { admin: true })).body.build).toBe(
      digest,
    );
  });

  test('has a path for every page, and returns 404 elsewhere', async () => {
    const router = readFileSync(
      new URL('../../ops/console/src/router.tsx', import.meta.url),
      'utf8',
    );
    const paths = [...router.matchAll(/getParentRoute: \(\) => root,\s+path: '([^']+)'/g)].map(
      ([, path = '']) => path,
    );
    expect(paths.length).toBeGreaterThan(3);
    for (const path of paths) {
      const page = `/console${path.replace('$appId', 'app')}`;
      expect([page, (await get(api.url, page)).status]).toEqual([page, 200]);
    }
    expect((await get(api.url, '/console/nothing')).status).toBe(404);
  });

  test('has assets cached for a year, as Brotli, gzip and plain', async () => {
    const [path = ''] = (await assetsOf()).filter((one) => one.endsWith('.js'));
    const plain = await get(api.url, path);
    expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    const bytes = Buffer.from(await plain.arrayBuffer());
    const gzip = await sentBytes(api.url, path, { 'accept-encoding': 'gzip' });
    expect(gzip.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(gzip.body).equals(bytes)).toBe(true);
    const brotli = await sentBytes(api.url, path, { 'accept-encoding': 'br, gzip' });
    expect(brotli.headers['content-encoding']).toBe('br');
    expect(brotliDecompressSync(brotli.body).equals(bytes)).toBe(true);
    expect((await get(api.url, '/console/assets/none.js')).status).toBe(404);
  });

  test('never leaves its folder', async () => {
    for (const path of [
      '../../package.json',
      '..%2f..%2fpackage.json',
      'assets/../../build.ts',
      'assets/..%2f..%2fbuild.ts',
    ]) {
      const { body } = await sentBytes(api.url, `/console/${path}`);
      expect(JSON.parse(body.toString()).error).toMatch(/^A part of the path is/);
    }
  });

  test('has a policy without inline code, other hosts and frames', async () => {
    const { headers } = await get(api.url, '/console');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(Object.fromEntries(headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers.get('strict-transport-security')).toBeNull();
  });

  test('loads its first page with few bytes', async () => {
    const bytesOf = async (path: string) =>
      (await sentBytes(api.url, path, { 'accept-encoding': 'gzip' })).body.length;
    let bytes = 0;
    for (const path of await assetsOf()) bytes += await bytesOf(path);
    expect(bytes).toBeGreaterThan(10_000);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    for (const language of ['en', 'zh']) {
      const texts = files.find((file) => new RegExp(`/${language}-[^/]+\\.js$`).test(file)) ?? '';
      const textBytes = await bytesOf(`/console/assets/${texts.split('/').at(-1)}`);
      expect(textBytes).toBeGreaterThan(10_000);
      expect((bytes + textBytes) / 1000).toBeLessThan(maxEntryKb);
    }
  });
});
