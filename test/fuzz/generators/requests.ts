import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { Route } from '../../../api/route.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { bodiesFor, queryMembers } from './bodies.ts';
import { credentialsFor, otherHeaders, type Targets } from './credentials.ts';
import { valuesFor } from './schema-values.ts';
import { members, rawBody, text, value } from './values.ts';

/** HTTP request, without the headers that Node's client adds. */
export interface FuzzRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
  /** Route for which the request was generated. */
  route: string;
}

/** Returns path segments: existing ids, hostile ids, and invalid encodings. */
function segment(parameter: string, targets: Targets): fc.Arbitrary<string> {
  const known = fc.nat(20).map((at) => {
    const ids = targets.ids[parameter] ?? targets.ids.any ?? ['x'];
    return encodeURIComponent(ids[at % ids.length] ?? 'x');
  });
  return fc.oneof(
    { weight: 6, arbitrary: known },
    { weight: 2, arbitrary: text.map((given) => encodeURIComponent(given.toWellFormed()) || 'x') },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '%',
        '%00',
        '%ff',
        '%2e%2e',
        '..',
        '%2f',
        '%0d%0a',
        'x%',
        '%c0%af',
        ';a=b',
      ),
    },
  );
}

function pathsOf({ method, paths }: Route, targets: Targets): fc.Arbitrary<string> {
  const partOf = (path: string) => (part: string) => {
    if (!part.startsWith(':')) return fc.constant(part);
    const isLast = path.endsWith(`/${part}`);
    return segment(
      method === 'DELETE' && part === ':appId' && isLast ? 'doomed' : part.slice(1),
      targets,
    );
  };
  return fc.oneof(
    ...paths.map((path) =>
      fc.tuple(...path.split('/').map(partOf(path))).map((parts) => parts.join('/')),
    ),
  );
}

/** Limit below which Node accepts the head of a request. Above it, Node returns 431. */
const maxQueryLength = 10_000;

/** Encodes a value for a URL: a text unchanged, other values as JSON. */
const queryText = (given: unknown): string =>
  encodeURIComponent(
    (typeof given === 'string' ? given : (JSON.stringify(given) ?? '')).toWellFormed(),
  );

const queryOf = (model: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  model.map((given) =>
    Object.entries(given ?? {})
      .map(([key, one]) => `${encodeURIComponent(key.toWellFormed())}=${queryText(one)}`)
      .join('&')
      .slice(0, maxQueryLength),
  );

function queriesOf(route: Route): fc.Arbitrary<string> {
  const own = route.query && valuesFor(route.query);
  const usual = queryOf(fc.record(queryMembers, { requiredKeys: [] }));
  const few = queryOf(
    fc
      .constantFrom(...Object.keys(queryMembers))
      .chain((key) => fc.record({ [key]: queryMembers[key] ?? value })),
  );
  const broken = fc.constantFrom(
    '%',
    'a=%ff',
    'where=%',
    'where[a]=b',
    'where=1&where=2',
    '&&&',
    'where',
    '__proto__=1',
  );
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant('') },
    { weight: 2, arbitrary: usual },
    { weight: 3, arbitrary: few },
    { weight: 1, arbitrary: broken },
    { weight: 1, arbitrary: queryOf(members) },
    ...(own ? [{ weight: 4, arbitrary: queryOf(own) }] : []),
  );
}

interface Content {
  headers: Record<string, string>;
  body: Buffer | undefined;
}

const types = fc.constantFrom(
  ...[
    'application/json',
    'application/json; charset=utf-8',
    'application/json; charset=x',
    'text/plain',
    'x',
    '',
  ],
  ...[
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'multipart/form-data; boundary=x',
    'text/html',
  ],
);

/** Content encodings, with a correct or a wrong body. */
const encodings: [string, (body: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['gzip', (body) => body],
  ['gzip', (body) => gzipSync(body).subarray(0, -5)],
  ['identity', (body) => body],
  ['zstd', (body) => body],
  ['gzip, gzip', (body) => gzipSync(gzipSync(body))],
];

const asJson = (given: unknown): Buffer => Buffer.from(JSON.stringify(given) ?? '');

/**
 * Returns bodies of old browsers, which contain keys, session and method
 * (protocol/clients.md#text-form).
 */
function textForm(app: App, body: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const more = fc.record(
    {
      _ApplicationKey: fc.oneof(fc.constant(app.appKey), value),
      _MasterKey: fc.oneof(fc.constant(app.masterKey), value),
      _ApplicationProduction: value,
      _SessionToken: value,
      _method: fc.oneof(fc.constantFrom('GET', 'PUT', 'DELETE', 'get'), value),
    },
    { requiredKeys: [] },
  );
  return fc
    .tuple(more, body)
    .map(([own, rest]) => ({ ...Object(rest), _ApplicationId: app.appId, ...own }));
}

function contentsOf(route: Route, targets: Targets): fc.Arbitrary<Content> {
  const own = route.body && valuesFor(route.body);
  const plausible = fc.constantFrom(...route.paths).chain(bodiesFor);
  const bodies = fc.oneof(
    { weight: 5, arbitrary: plausible.map(asJson) },
    { weight: 1, arbitrary: members.map(asJson) },
    { weight: 1, arbitrary: rawBody },
    ...(own ? [{ weight: 4, arbitrary: own.map(asJson) }] : []),
  );
  const plain = bodies.map((body) => ({ headers: { 'Content-Type': 'application/json' }, body }));
  const typed = fc
    .tuple(bodies, types)
    .map(([body, type]) => ({ headers: { 'Content-Type': type }, body }));
  const encoded = fc
    .tuple(bodies, fc.constantFrom(...encodings))
    .map(([body, [encoding, encode]]) => ({
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': encoding },
      body: encode(body),
    }));
  const inText = textForm(targets.app, plausible).map((given) => ({
    headers: { 'Content-Type': 'text/plain', 'X-LC-Id': '' },
    body: asJson(given),
  }));
  return fc.oneof(
    { weight: 12, arbitrary: plain },
    { weight: 2, arbitrary: typed },
    { weight: 1, arbitrary: encoded },
    { weight: 1, arbitrary: inText },
    { weight: 1, arbitrary: fc.constant({ headers: {}, body: undefined }) },
  );
}

const otherMethods = fc.constantFrom(
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'PROPFIND',
  'QUERY',
);
const hasNoBody = (method: string) => method === 'GET' || method === 'HEAD';

/** Returns requests for one route, mostly with valid keys, rarely with another method. */
export function requestsFor(route: Route, targets: Targets): fc.Arbitrary<FuzzRequest> {
  const method = fc.oneof(
    { weight: 19, arbitrary: fc.constant(route.method) },
    { weight: 1, arbitrary: otherMethods },
  );
  return fc
    .record({
      method,
      path: pathsOf(route, targets),
      query: queriesOf(route),
      credentials: credentialsFor(route, targets),
      more: otherHeaders,
      content: contentsOf(route, targets),
    })
    .map(({ method, path, query, credentials, more, content }) => {
      const isBare = hasNoBody(method);
      const headers = { ...more, ...credentials, ...(isBare ? {} : content.headers) };
      return {
        method,
        path: query === '' ? path : `${path}?${query}`,
        headers: dictionaryOfTexts(headers),
        body: isBare ? undefined : content.body,
        route: `${route.method} ${route.paths[0]}`,
      };
    });
}

/** Removes empty headers. */
const dictionaryOfTexts = (headers: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([key, one]) =>
      one === undefined || one === '' ? [] : [[key, one]],
    ),
  );
