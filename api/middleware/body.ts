import { setImmediate } from 'node:timers/promises';
import type { Context } from 'koa';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import type { Route, SentBody } from '../route.ts';
import type { BodySender, ReadLimit, RequestBody } from './request-body.ts';
import { type ParsedBody, type TextForm, withoutPrivateMembers } from './text-form.ts';

/** SDKs send one with DELETE too: `{}`, or which hooks are not to run (protocol/clients.md#empty-bodies). */
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** A text from this length on is parsed in a turn of the event loop of its own. */
const longText = 1024 * 1024;

const allowanceOf = ({ limit }: Route, sender: BodySender): ReadLimit => ({
  sender,
  bytesBelow: limit.bodyBytesBelow,
  isObject: limit.isObject === true,
});

/** The body of a request as text, whatever it is; empty where the route reads none. Throws 413, 116, 415, 408, 107. */
export async function readText(ctx: Context, route: Route, sender: BodySender): Promise<string> {
  if (route.limit.bodyBytesBelow === 0 || !methodsWithBody.has(ctx.method)) return '';
  const intake: RequestBody = ctx.state.intake;
  const text = await intake.text(allowanceOf(route, sender));
  if (/^\s*[[{]/.test(text)) intake.chargeValues(text);
  if (text.length >= longText) await setImmediate();
  return text;
}

/**
 * The body of a request as a JSON dictionary; `{}` when there is none. Throws 107 for anything that is no dictionary, and
 * as `readText`.
 */
export async function readBody(ctx: Context, route: Route, sender: BodySender): Promise<ParsedBody> {
  const form: TextForm | undefined = ctx.state.textForm;
  if (form?.body) {
    const intake: RequestBody = ctx.state.intake;
    intake.chargeTo(sender);
    return form.body;
  }
  const text = await readText(ctx, route, sender);
  const value = parseDictionary(text, {
    isForm: Boolean(ctx.is('application/x-www-form-urlencoded')),
    route,
  });
  return { value: form ? withoutPrivateMembers(value) : value, bytes: Buffer.byteLength(text) };
}

function parseDictionary(text: string, { isForm, route }: { isForm: boolean; route: Route }): JsonObject {
  if (text.trim() === '') {
    if (route.isBodyNeeded) throw new Refusal('malformedJson');
    return {};
  }
  const value = parse(text, isForm);
  // JSS's updatePassword and refreshSessionToken send `null` for "no body" (protocol/clients.md#empty-bodies).
  if (value === null && route.isNullNothing) return {};
  if (!isJsonObject(value)) throw new Refusal('malformedJson');
  return value;
}

function parse(text: string, isForm: boolean): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // What a form without scripts sends; clients in the field send JSON under its type too.
    if (isForm) return Object.fromEntries(new URLSearchParams(text));
    throw new Refusal('malformedJson', { cause });
  }
}

/** The body of a request for a service that passes it on: JSON of any kind, `{}` where there is none. Throws as `readText`. */
export async function readToPassOn(ctx: Context, route: Route, sender: BodySender): Promise<SentBody> {
  const form: TextForm | undefined = ctx.state.textForm;
  const text = form
    ? JSON.stringify((await readBody(ctx, route, sender)).value)
    : await readText(ctx, route, sender);
  if (!form && text.trim() !== '') parse(text, false);
  return {
    text: text.trim() === '' ? '{}' : text,
    userAgent: ctx.get('user-agent'),
    clientAgent: ctx.get('x-lc-ua'),
    via: ctx.get('via'),
  };
}
