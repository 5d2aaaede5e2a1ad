import { setImmediate } from 'node:timers/promises';
import type { Context } from 'koa';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject, parseExactly } from '../../shared/domain/json.ts';
import type { SentBody } from '../calls/call.ts';
import type { Route } from '../route.ts';
import type { BodySender, ReadLimit, RequestBody } from './request-body.ts';
import { type ParsedBody, type TextForm, withoutPrivateMembers } from './text-form.ts';

/**
 * Methods with a body. SDKs also send a body with DELETE: `{}`, or the hooks to skip
 * (protocol/clients.md#empty-bodies).
 */
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Length of a text from which parsing first yields to the event loop. */
const longText = 1024 * 1024;

const readLimitOf = ({ limit }: Route, sender: BodySender): ReadLimit => ({
  sender,
  bytesBelow: limit.bodyBytesBelow,
  isObject: limit.isObject === true,
});

/**
 * Reads the body of a request as text. Returns an empty text if the route reads no body. Throws
 * errors 413, 116, 415, 408, 107.
 */
export async function readText(ctx: Context, route: Route, sender: BodySender): Promise<string> {
  if (route.limit.bodyBytesBelow === 0 || !methodsWithBody.has(ctx.method)) return '';
  const requestBody: RequestBody = ctx.state.requestBody;
  const text = await requestBody.text(readLimitOf(route, sender));
  if (/^\s*[[{]/.test(text)) requestBody.chargeValues(text);
  if (text.length >= longText) await setImmediate();
  return text;
}

/**
 * Reads the body of a request as a JSON dictionary. Returns `{}` without a body. Throws error 107
 * for any other value, and as `readText`.
 */
export async function readBody(
  ctx: Context,
  route: Route,
  sender: BodySender,
): Promise<ParsedBody> {
  const form: TextForm | undefined = ctx.state.textForm;
  if (form?.body) {
    const requestBody: RequestBody = ctx.state.requestBody;
    requestBody.chargeTo(sender);
    return form.body;
  }
  const text = await readText(ctx, route, sender);
  const value = parseDictionary(text, { isForm: () => isForm(ctx), route });
  return { value: form ? withoutPrivateMembers(value) : value, bytes: Buffer.byteLength(text) };
}

const isForm = (ctx: Context): boolean => Boolean(ctx.is('application/x-www-form-urlencoded'));

function parseDictionary(
  text: string,
  { isForm, route }: { isForm: () => boolean; route: Route },
): JsonObject {
  if (text.trim() === '') {
    if (route.isBodyRequired) throw new Refusal('malformedJson');
    return {};
  }
  const value = parse(text, isForm);
  // For "no body", the JavaScript SDK's updatePassword and refreshSessionToken send `null`
  // (protocol/clients.md#empty-bodies).
  if (value === null && route.acceptsNullBody) return {};
  if (!isJsonObject(value)) throw new Refusal('malformedJson');
  return value;
}

function parse(text: string, isForm: () => boolean): unknown {
  try {
    return parseExactly(text);
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    // HTML forms send this encoding. Some clients send JSON with the same content type.
    if (isForm()) return Object.fromEntries(new URLSearchParams(text));
    throw new Refusal('malformedJson', { cause });
  }
}

/**
 * Reads any JSON as text, for a service that forwards it. Returns `{}` without a body. Throws as
 * `readText`.
 */
export async function readToForward(
  ctx: Context,
  route: Route,
  sender: BodySender,
): Promise<SentBody> {
  const form: TextForm | undefined = ctx.state.textForm;
  const text = form
    ? JSON.stringify((await readBody(ctx, route, sender)).value)
    : await readText(ctx, route, sender);
  if (!form && text.trim() !== '') parse(text, () => false);
  return {
    text: text.trim() === '' ? '{}' : text,
    userAgent: ctx.get('user-agent'),
    clientAgent: ctx.get('x-lc-ua'),
    via: ctx.get('via'),
  };
}
