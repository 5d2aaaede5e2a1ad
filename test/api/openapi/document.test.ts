import { describe, expect, test } from 'vitest';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { refusalsOf } from '../../../api/openapi/refusals.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
describe('the OpenAPI document', () => {
  test('has an operation for each path of each route, each with its own id', async () => {
    const routes = await loadRoutes();
    const { paths } = openApiDocument(routes) as {
      paths: Record<string, Record<string, { operationId: string }>>;
    };
    const ids = Object.values(paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(ids).toHaveLength(routes.flatMap((route) => route.paths).length);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z0-9]*$/);
  });

  test('names every refusal that some call may get', async () => {
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
    expect(body).toEqual(JSON.parse(JSON.stringify(openApiDocument(await loadRoutes()))));
  });

  test('tells a client that the copy it has is still right', async () => {
    const { headers } = await api.request('GET', '/openapi.json');
    const etag = headers.get('etag') ?? '';
    const again = await api.request('GET', '/openapi.json', { headers: { 'If-None-Match': etag } });
    expect(again).toMatchObject({ status: 304, body: '' });
    const other = await api.request('GET', '/openapi.json', { headers: { 'If-None-Match': '"other"' } });
    expect(other.status).toBe(200);
  });
});
