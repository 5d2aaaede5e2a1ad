import type { Context, Middleware } from 'koa';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseJson } from '../../shared/domain/json.ts';
import { hasAppId } from './authentication.ts';
import type { RequestBody } from './request-body.ts';

/** Members of a text-form body that stand for headers (protocol/clients.md#text-form). */
const headerOfMember = new Map([
  ['_ApplicationId', 'x-lc-id'],
  ['_ApplicationKey', 'x-lc-key'],
  ['_MasterKey', 'x-avoscloud-master-key'],
  ['_ApplicationProduction', 'x-lc-prod'],
  ['_SessionToken', 'x-lc-session'],
]);

const allowedMethods = new Set(['GET', 'PUT', 'DELETE', 'POST']);

export interface ParsedBody {
  value: JsonObject;
  bytes: number;
}

/** A request whose keys came in its body. */
export interface TextForm {
  /** Undefined while only its beginning was read: the rest follows once the keys are known to be right. */
  body: ParsedBody | undefined;
}

/**
 * Old browsers avoid the CORS preflight by sending `text/plain` with credentials and method inside the body. Turned here
 * into the request that was meant; members that begin with one `_` go no further. Before the keys are known, 16 KB are
 * read: a longer body has its private members first, and is read on by its route. Throws 107, 413, 415.
 */
export const textForm: Middleware = async (ctx, next) => {
  const isCall = ctx.path.startsWith('/1.1/');
  if (isCall && ctx.method === 'POST' && !hasAppId(ctx) && ctx.is('text/plain')) {
    const intake: RequestBody = ctx.state.intake;
    const { text, isWhole } = await intake.prefix();
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
  // A query of this size is not read.
  if (ctx.method === 'GET') throw new Refusal('payloadTooLarge');
  ctx.state.textForm = { body: undefined } satisfies TextForm;
}

function dictionaryIn(text: string): JsonObject {
  try {
    const value = parseJson(text);
    if (isJsonObject(value)) return value;
  } catch {
    // The same refusal, whatever is wrong.
  }
  throw new Refusal('malformedJson');
}

const begin = /\s*\{/y;
const privateMember = /\s*("_[A-Za-z]{1,40}")\s*:\s*("(?:[^"\\]|\\.){0,2000}"|[\w.+-]{1,40})\s*,/y;

/** Members at the beginning of a text that is cut off, as far as they begin with `_` and hold no more than a scalar. */
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

/** What is left of a text-form body for the route. */
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
