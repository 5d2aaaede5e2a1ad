import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { requestSchema } from '../../../api/openapi/json-schema.ts';
import { descriptionOf, loadExamples, refusalsOf } from '../../../api/openapi/operation.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
const linter = fileURLToPath(new URL('../../support/openapi/openapi-linter.mjs', import.meta.url));

/** Lints a document. Returns one line per problem. */
async function lint(document: object): Promise<string[]> {
  const child = spawn(process.execPath, [linter], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(document));
  return z.array(z.string()).parse(JSON.parse(await text(child.stdout)));
}

/** True for paths of classes that do not exist, because these calls are always refused. */
const isRefusal = (line: string): boolean =>
  line.startsWith('operation-2xx-response at #/paths/~11.1~1classes~1{className}');

/** True for the pages of a login, which lead to another page. */
const isRedirect = (line: string): boolean =>
  /^operation-2xx-response at #\/paths\/~1console~1oidc~1(start|callback)\//.test(line);

describe('the OpenAPI document', () => {
  test('passes the recommended rules of a linter', async () => {
    const document = openApiDocument(await loadRoutes(), await loadExamples());
    expect((await lint(document)).filter((line) => !isRefusal(line) && !isRedirect(line))).toEqual(
      [],
    );
    expect(await lint({ ...document, tags: 'none' })).not.toEqual([]);
  });

  test('has an operation for each path of each route, each with its own id', async () => {
    const routes = await loadRoutes();
    const { paths } = openApiDocument(routes, await loadExamples()) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const ids = Object.values(paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(ids).toHaveLength(routes.flatMap((route) => route.paths).length);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]*$/);
  });

  test('describes every operation as its route declares it', async () => {
    const routes = await loadRoutes();
    const { paths } = openApiDocument(routes, await loadExamples()) as {
      paths: Record<string, Record<string, { summary: string; description?: string }>>;
    };
    for (const { summary, description } of Object.values(paths).flatMap(Object.values)) {
      expect(description, summary).toMatch(/^(Needs|Same as) .*\.$/);
      expect(description).not.toBe(summary);
    }
    for (const route of routes) {
      const text = descriptionOf(route);
      const { role, limit, method, changesNothing, isBatch, isBatchable } = route;
      const isAudited = role !== undefined && method !== 'GET' && !changesNothing;
      expect(text.includes('lowest role'), text).toBe(role !== undefined);
      expect(text.includes('bytes'), text).toBe(limit.bodyBytesBelow > 0);
      expect(text.includes('`pushCallsPerMinute`'), text).toBe(limit.rate === 'push');
      expect(text.includes('audit'), text).toBe(isAudited);
      expect(text.includes('A batch'), text).toBe(isBatchable && !isBatch);
    }
  });

  test('states access, limits, audit and batches of a call in its description', async () => {
    const routes = await loadRoutes();
    const texts = new Map(routes.map((route) => [route.operation, descriptionOf(route)]));
    expect(texts.get('sendPush')).toMatch(
      /^Needs the master key\. .*`forbidClientPush`.* bytes\. .*`pushCallsPerMinute`.* A batch may/,
    );
    expect(texts.get('createConsoleToken')).toMatch(
      /^Needs a token or a session .* role .* is `owner`\. .* bytes\. A change is recorded/,
    );
    expect(texts.get('runBatch')).not.toContain('A batch');
  });

  test('gives every member of a query and a body a type', async () => {
    const requests = (await loadRoutes()).flatMap(({ operation, query, body }) =>
      [query, body].map((schema) => ({ operation, schema })),
    );
    const untyped = requests.flatMap(({ operation, schema }) =>
      Object.entries(schema ? (requestSchema(schema).properties ?? {}) : {})
        .filter(([, member]) =>
          ['type', 'anyOf', 'enum', 'const'].every((key) => !(key in Object(member))),
        )
        .map(([name]) => `${operation} ${name}`),
    );
    // This is a list of names (protocol/functions.md#ignored-hooks). Any other value is ignored.
    expect(untyped).toEqual(['deleteUser __ignore_hooks']);
  });

  test('names every refusal that a call may return', async () => {
    const names = new Set((await loadRoutes()).flatMap(refusalsOf));
    expect(names).toContain('masterKeyRequired');
    expect(names.size).toBeGreaterThan(60);
  });
});

describe('GET /openapi.json', () => {
  test('returns the document without credentials', async () => {
    const { status, headers, body } = await api.request('GET', '/openapi.json');
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('cache-control')).toBe('public, max-age=3600');
    expect(body).toEqual(
      JSON.parse(JSON.stringify(openApiDocument(await loadRoutes(), await loadExamples()))),
    );
  });

  test('returns 304 to a client that has the current document', async () => {
    const { headers } = await api.request('GET', '/openapi.json');
    const etag = headers.get('etag') ?? '';
    const again = await api.request('GET', '/openapi.json', { headers: { 'If-None-Match': etag } });
    expect(again).toMatchObject({ status: 304, body: '' });
    const other = await api.request('GET', '/openapi.json', {
      headers: { 'If-None-Match': '"other"' },
    });
    expect(other.status).toBe(200);
  });
});

test('the app key is refused exactly where the description requires the master key', async () => {
  const app = await api.createApp();
  const routes = (await loadRoutes()).filter(
    ({ auth }) => !['none', 'login', 'admin'].includes(auth),
  );
  expect(routes.length).toBeGreaterThan(50);
  for (const route of routes) {
    const path = (route.paths[0] ?? '').replace(':className', '_User').replaceAll(/:\w+/g, 'x');
    const isRead = route.method === 'GET' || route.limit.bodyBytesBelow === 0;
    const { body } = await api.request(route.method, path, {
      app,
      ...(isRead ? {} : { body: {} }),
    });
    const isRefused = /master key/.test(body.error ?? '');
    expect(isRefused, `${route.operation}: ${body.error}`).toBe(
      descriptionOf(route).startsWith('Needs the master key'),
    );
  }
});
