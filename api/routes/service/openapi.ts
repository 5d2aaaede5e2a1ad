import { createHash } from 'node:crypto';
import { openApiDocument } from '../../openapi/document.ts';
import { loadExamples } from '../../openapi/examples.ts';
import { noBody, type Reply, route } from '../../route.ts';
import { loadRoutes } from '../../route-loader.ts';

const contentType = 'application/json; charset=utf-8';

interface Document {
  text: string;
  headers: Record<string, string>;
}

let document: Promise<Document> | undefined;

/** Builds the document at the first request; every later reply is the same string. */
async function build(): Promise<Document> {
  const text = JSON.stringify(openApiDocument(await loadRoutes(), await loadExamples()));
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
  return { text, headers: { ETag: etag, 'Cache-Control': 'public, max-age=3600' } };
}

export default [
  route({
    method: 'GET',
    path: '/openapi.json',
    operation: 'getOpenApiDocument',
    summary: 'Returns the description of this API as OpenAPI 3.1.',
    auth: 'none',
    limit: noBody,
    hasRawBody: true,
    reply: { 200: { contentType } },
    refusals: [],
    handle: async ({ raw }): Promise<Reply> => {
      document ??= build();
      const { text, headers } = await document;
      const isKnown = raw?.headers['if-none-match'] === headers.ETag;
      return isKnown ? { status: 304, headers, body: '' } : { body: text, type: contentType, headers };
    },
  }),
];
