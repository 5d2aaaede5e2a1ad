import type { Context, Middleware } from 'koa';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../shared/domain/json.ts';
import { hasAppId } from './authentication.ts';
import type { RequestBody } from './request-body.ts';

/** Headers that members of a text-form body replace (protocol/clients.md#text-form). */
const headerOfMember = new Map([
  ['_ApplicationId', 'x-lc-id'],
  ['_ApplicationKey', 'x-lc-key'],
  ['_MasterKey', 'x-avoscloud-master-key'],
  ['_ApplicationProduction', 'x-lc-prod'],
  ['_SessionToken', 'x-lc-session'],
]);

const allowedMethods = new Set(['GET', 'PUT', 'DELETE', 'POST']);

/** Dictionary of a body, with the size of the body. */
export interface ParsedBody {
  value: JsonObject;
  bytes: number;
}

/** Request with its keys in the body. */
export interface TextForm {
  /** Undefined for a long body. Only its beginning is read before its keys are checked. */
  body: ParsedBody | undefined;
}

/**
 * Converts requests of old browsers. To avoid the CORS preflight, they send `text/plain` with
 * credentials and method in the body. Members that begin with a single `_` are removed. Before the
 * keys are checked, only 16 KB are read. A longer body must begin with these members, and the route
 * reads the rest. Throws errors 107, 413, 415.
 */
export const textForm: Middleware = async (ctx, next) => {
  const isCall = ctx.path.startsWith('/1.1/');
  if (isCall && ctx.method === 'POST' && !hasAppId(ctx) && ctx.is('text/plain')) {
    const requestBody: RequestBody = ctx.state.requestBody;
    const { text, isWhole } = await requestBody.prefix();
    if (isWhole) readWhole(ctx, text);
    else readBeginning(ctx, text);
  }
  await next();
};

function readWhole(ctx: Context, text: string): void {
  const value = text.trim() === '' ? {} : dictionaryIn(text);
  setHeaders(ctx, value);
  setMethod(ctx, value._method);
  const rest = withoutPrivateMembers(value);
  if (ctx.method === 'GET') ctx.query = { ...ctx.query, ...asQuery(rest) };
  const body = { value: ctx.method === 'GET' ? {} : rest, bytes: Buffer.byteLength(text) };
  ctx.state.textForm = { body } satisfies TextForm;
}

function readBeginning(ctx: Context, text: string): void {
  const members = leadingMembers(text);
  if (members._ApplicationId === undefined) throw new Refusal('payloadTooLarge');
  setHeaders(ctx, members);
  setMethod(ctx, members._method);
  // No query is this long.
  if (ctx.method === 'GET') throw new Refusal('payloadTooLarge');
  ctx.state.textForm = { body: undefined } satisfies TextForm;
}

function dictionaryIn(text: string): JsonObject {
  try {
    const value = parseJson(text);
    if (isJsonObject(value)) return value;
  } catch (error) {
    if (error instanceof Refusal) throw error;
  }
  throw new Refusal('malformedJson');
}

const begin = /\s*\{/y;
const privateMember = /\s*("_[A-Za-z]{1,40}")\s*:\s*("(?:[^"\\]|\\.){0,2000}"|[\w.+-]{1,40})\s*,/y;

/** Reads the scalar members with a leading `_` from the beginning of a truncated text. */
function leadingMembers(text: string): JsonObject {
  begin.lastIndex = 0;
  const members: [string, Json][] = [];
  let at = begin.test(text) ? begin.lastIndex : text.length;
  for (;;) {
    privateMember.lastIndex = at;
    const match = privateMember.exec(text);
    if (!match) return Object.fromEntries(members);
    members.push(...Object.entries(dictionaryIn(`{${match[1]}:${match[2]}}`)));
    at = privateMember.lastIndex;
  }
}

function setHeaders(ctx: Context, members: JsonObject): void {
  for (const [member, header] of headerOfMember) {
    const sent = members[member];
    if (typeof sent === 'string' || typeof sent === 'number' || typeof sent === 'boolean')
      ctx.req.headers[header] = String(sent);
  }
}

function setMethod(ctx: Context, method: Json | undefined): void {
  if (typeof method === 'string' && allowedMethods.has(method.toUpperCase()))
    ctx.method = method.toUpperCase();
}

/** Returns the members of a text-form body that the route gets. */
export function withoutPrivateMembers(body: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(body).filter(([key]) => !key.startsWith('_') || key.startsWith('__')),
  );
}

function asQuery(body: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => [
      key,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
}
