import { createServer, type IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { areas, routesOf } from '../../../api/openapi/areas.ts';
import { openApiDocument } from '../../../api/openapi/document.ts';
import { loadExamples } from '../../../api/openapi/operation.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import { blocksOf, runShell } from './pages.ts';

/** Checks docs/reference/http-api.md and admin-http-api.md, and the descriptions behind them. */
const pages = ['http-api', 'admin-http-api'] as const;

const routes = await loadRoutes();
const examples = await loadExamples();

interface Received {
  method: string;
  url: URL;
  headers: IncomingHttpHeaders;
  body: string;
}

const received: Received[] = [];
const server = createServer(async (request, response) => {
  const { method = '', url = '', headers } = request;
  const body = await text(request);
  received.push({ method, url: new URL(url, 'http://localhost'), headers, body });
  response.end();
});

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

const variables = {
  APP_ID: 'an-app',
  APP_KEY: 'a-key',
  MASTER_KEY: 'a-master-key',
  SESSION: 'a-session',
  CARILLON_ADMIN_TOKEN: 'a-token',
};

/** Headers of a request by the kind of its credentials. */
const credentialHeaders = {
  appKey: { 'x-lc-id': 'an-app', 'x-lc-key': 'a-key' },
  masterKey: { 'x-lc-id': 'an-app', 'x-lc-key': 'a-master-key,master' },
  session: { 'x-lc-session': 'a-session' },
  adminToken: { authorization: 'Bearer a-token' },
} as const;

describe.each(pages)('the commands of reference/%s.md', (page) => {
  test('send the requests that the examples recorded', { timeout: 60_000 }, async () => {
    const { port } = z.object({ port: z.number() }).parse(server.address());
    const commands = (await blocksOf(`reference/${page}.md`, 'sh')).filter((block) =>
      block.startsWith('curl '),
    );
    const documented = areas
      .filter((area) => area.page === page)
      .flatMap((area) => routesOf(area, routes))
      .filter(({ operation }) => operation in examples);
    expect(commands).toHaveLength(documented.length);
    received.length = 0;
    // A command line has a limited length.
    for (let i = 0; i < commands.length; i += 20) {
      const env = { ...variables, URL: `http://127.0.0.1:${port}` };
      const result = await runShell(commands.slice(i, i + 20), { cwd: tmpdir(), env });
      expect(result).toMatchObject({ code: 0 });
    }
    expect(received).toHaveLength(documented.length);
    for (const [i, route] of documented.entries()) {
      const { path = {}, query = {}, credentials = [], body } = examples[route.operation] ?? {};
      const sent = received[i];
      const target = (route.paths[0] ?? '').replaceAll(/:(\w+)/g, (_, name: string) =>
        name === 'appId' ? 'an-app' : encodeURIComponent(path[name] ?? ''),
      );
      expect(sent?.method, route.operation).toBe(route.method);
      expect(sent?.url.pathname, route.operation).toBe(target);
      expect(Object.fromEntries(sent?.url.searchParams ?? [])).toEqual(
        Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)])),
      );
      for (const one of credentials)
        expect(sent?.headers, route.operation).toMatchObject(credentialHeaders[one]);
      expect(sent?.body === '' ? undefined : JSON.parse(sent?.body ?? ''), route.operation).toEqual(
        body,
      );
    }
  });
});

const schema = z.looseObject({
  $ref: z.string().optional(),
  description: z.string().optional(),
  get properties() {
    return z.record(z.string(), schema).optional();
  },
  get items() {
    return schema.optional();
  },
  get additionalProperties() {
    return z.union([z.boolean(), schema]).optional();
  },
  get anyOf() {
    return z.array(schema).optional();
  },
  get allOf() {
    return z.array(schema).optional();
  },
});
type Schema = z.infer<typeof schema>;
const content = z.record(z.string(), z.looseObject({ schema: schema.optional() }));
const document = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        operationId: z.string(),
        parameters: z
          .array(z.looseObject({ name: z.string().optional(), description: z.string().optional() }))
          .default([]),
        requestBody: z.looseObject({ content }).optional(),
        responses: z.record(z.string(), z.looseObject({ content: content.optional() })),
      }),
    ),
  ),
  components: z.looseObject({ schemas: z.record(z.string(), schema) }),
});

/** Returns the replies that are no refusals. All refusals have the same members. */
const successesOf = <T>(responses: Record<string, T>): T[] =>
  Object.entries(responses).flatMap(([status, one]) => (Number(status) >= 400 ? [] : [one]));

test('every member of a call has a description', () => {
  const { paths, components } = document.parse(openApiDocument(routes, examples));
  const named = new Set<string>();
  /** Returns the members without a description inside a schema. */
  function undescribed(one: Schema, at: string): string[] {
    const name = one.$ref?.split('/').at(-1);
    if (name !== undefined) {
      if (named.has(name)) return [];
      named.add(name);
      return undescribed(components.schemas[name] ?? expect.fail(name), name);
    }
    const { properties = {}, items, additionalProperties: values, anyOf = [], allOf = [] } = one;
    const members = Object.entries(properties).flatMap(([member, inner]) => [
      ...(inner.description || isDescribed(inner) ? [] : [`${at}.${member}`]),
      ...undescribed(inner, `${at}.${member}`),
    ]);
    const parts = [items, typeof values === 'object' ? values : undefined, ...anyOf, ...allOf];
    return [...members, ...parts.flatMap((part) => (part ? undescribed(part, at) : []))];
  }
  /** True for a member with a named schema that has a description. */
  const isDescribed = ({ $ref }: Schema): boolean =>
    components.schemas[$ref?.split('/').at(-1) ?? '']?.description !== undefined;

  const lacking = Object.values(paths)
    .flatMap((operations) => Object.values(operations))
    .flatMap(({ operationId, parameters, requestBody, responses }) => [
      ...parameters
        .filter(({ name, description }) => name !== undefined && !description)
        .map(({ name }) => `${operationId} ${name}`),
      ...[requestBody, ...successesOf(responses)]
        .flatMap((one) => Object.values(one?.content ?? {}))
        .flatMap((one) => (one.schema ? undescribed(one.schema, operationId) : [])),
    ]);
  expect([...new Set(lacking)]).toEqual([]);
});
