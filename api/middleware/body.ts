import type { Readable, Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Context } from 'koa';
import { HttpMethodEnum, koaBody } from 'koa-body';
import { Refusal } from '../../shared/domain/errors.ts';
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import type { SentBody } from '../route.ts';

/** The most any endpoint reads (compat.md 4: body 20 MB). */
const maxBodyBytes = 20 * 1024 * 1024;

/** SDKs send one with DELETE too: `{}`, or which hooks are not to run (compat.md 4). */
const { POST, PUT, PATCH, DELETE } = HttpMethodEnum;
const methodsWithBody = new Set<string>([POST, PUT, PATCH, DELETE]);

/**
 * Reads every body as text: clients in the field send JSON under several content types (compat.md 2.3),
 * and parsing it here gives one refusal for all of them.
 */
const readerOf = (textLimit: number) =>
  koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    textTypes: ['*/*'],
    textLimit,
    parsedMethods: [POST, PUT, PATCH, DELETE],
    onError: (error) => {
      throw bodyRefusal(error);
    },
  });

/** One for each limit that routes name. */
const readers = new Map<number, ReturnType<typeof readerOf>>();

function bodyRefusal(error: Error): Refusal {
  const status = 'status' in error ? error.status : undefined;
  if (status === 413) return new Refusal('payloadTooLarge', { cause: error });
  if (status === 415) return new Refusal('unsupportedMediaType', { cause: error });
  return new Refusal('malformedJson', { cause: error });
}

/** The body of a request as text, whatever it is. Throws 413 when it is longer than `bodyBytes`. */
export async function readText(ctx: Context, bodyBytes = maxBodyBytes): Promise<string> {
  if (!methodsWithBody.has(ctx.method)) return '';
  const read = readers.get(bodyBytes) ?? readerOf(bodyBytes);
  readers.set(bodyBytes, read);
  // The reader takes a body without a type for none at all.
  ctx.req.headers['content-type'] ||= 'application/json';
  await read(ctx, async () => {});
  return typeof ctx.request.body === 'string' ? ctx.request.body : '';
}

export interface ParsedBody {
  value: JsonObject;
  bytes: number;
}

/**
 * The body of a request as a JSON dictionary; `{}` when there is none. Read once, remembered on the
 * request. Throws 107 for anything that is no dictionary, 413 above 20 MB.
 */
export async function readBody(ctx: Context): Promise<ParsedBody> {
  if (ctx.state.parsedBody) return ctx.state.parsedBody;
  if (!methodsWithBody.has(ctx.state.sentMethod ?? ctx.method)) return { value: {}, bytes: 0 };
  const text = await readText(ctx);
  const isForm = Boolean(ctx.is('application/x-www-form-urlencoded'));
  const parsed = { value: parseDictionary(text, isForm), bytes: Buffer.byteLength(text) };
  ctx.state.parsedBody = parsed;
  return parsed;
}

function parseDictionary(text: string, isForm: boolean): JsonObject {
  if (text.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    // What a form without scripts sends; clients in the field send JSON under its type too.
    if (isForm) return Object.fromEntries(new URLSearchParams(text));
    throw new Refusal('malformedJson', { cause });
  }
  // JSS's updatePassword and refreshSessionToken send `null` for "no body" (compat.md 9.2).
  if (value === null) return {};
  if (!isJsonObject(value)) throw new Refusal('malformedJson');
  return value;
}

/** The body of a request for somebody who passes it on. Throws 413 when it says that it is too long, 415. */
export function sendOn(ctx: Context, limit = maxBodyBytes): SentBody {
  const told = ctx.get('content-length');
  if (Number(told) >= limit) throw new Refusal('payloadTooLarge');
  const parsed: ParsedBody | undefined = ctx.state.parsedBody;
  const isEmpty = told === '0' || (told === '' && !ctx.get('transfer-encoding'));
  const text = parsed ? JSON.stringify(parsed.value) : isEmpty ? '{}' : undefined;
  const isPlain = isUnencoded(ctx);
  return {
    body: text ?? (isPlain ? ctx.req : inflated(ctx)),
    length: text !== undefined ? Buffer.byteLength(text) : isPlain && told ? Number(told) : undefined,
    userAgent: ctx.get('user-agent'),
    clientAgent: ctx.get('x-lc-ua'),
    via: ctx.get('via'),
  };
}

const isUnencoded = (ctx: Context): boolean => ['', 'identity'].includes(ctx.get('content-encoding'));

const unpackers = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

/** What was packed by the sender, unpacked: limits are for what it holds. */
function inflated(ctx: Context): Readable {
  const open = unpackers.get(ctx.get('content-encoding'));
  if (!open) throw new Refusal('unsupportedMediaType');
  const unpacked = open();
  const breakOff = () => {
    if (!ctx.req.readableEnded) unpacked.destroy(new Error('broken off'));
  };
  ctx.req.once('error', breakOff).once('close', breakOff);
  return ctx.req.pipe(unpacked);
}
