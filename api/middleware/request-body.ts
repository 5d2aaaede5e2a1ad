import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Middleware } from 'koa';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { measureJson } from '../../shared/domain/json.ts';
import { BodyBudget } from '../../shared/http/body/budget.ts';
import { BodyReader, declaredBytes, defaultBodyMs, isCompressed } from '../../shared/http/body/reader.ts';
import { originKey } from '../channel/admission.ts';
import { maxBodyBytes, smallBytes } from '../route.ts';

const mb = 1024 * 1024;

/** Limits of all request bodies of one process. */
export interface BodyLimits {
  /** For a body to arrive. */
  bodyMs: number;
  /** Bytes in hand of senders whose keys are known: six batches of the largest size. */
  totalBytes: number;
  /** Of these for one app, and for one remote address: half, so that no single one refuses the others. */
  senderBytes: number;
  /** Bytes in hand of senders without a key: a thousand requests. Apart, so that they cost nobody who has one. */
  unauthenticatedBytes: number;
  /** Of these for one remote address. */
  unauthenticatedIpBytes: number;
}

export const defaultBodyLimits: BodyLimits = {
  bodyMs: defaultBodyMs,
  totalBytes: 128 * mb,
  senderBytes: 64 * mb,
  unauthenticatedBytes: 16 * mb,
  unauthenticatedIpBytes: mb,
};

/** The most that is read of a sender without a key, in bytes. */
export const unauthenticatedBodyBytes = smallBytes;

/** What a parsed value takes of the budget beside its text: an object with one member of its own. */
const valueBytes = 100;
/** Values of shorter texts are not charged. */
const chargedLength = 64 * 1024;

/** Bytes of request bodies that this process has in hand, and what it reads at most. */
export class BodyMemory {
  readonly limits: BodyLimits;
  readonly #authenticated: BodyBudget;
  readonly #unauthenticated: BodyBudget;

  /** `onChange` is told by how many bytes the bytes in hand change. */
  constructor(limits: Partial<BodyLimits> = {}, onChange?: (bytes: number) => void) {
    this.limits = { ...defaultBodyLimits, ...limits };
    const {
      totalBytes,
      senderBytes,
      unauthenticatedBytes: strangerBytes,
      unauthenticatedIpBytes: strangerAddressBytes,
    } = this.limits;
    this.#authenticated = new BodyBudget({ total: totalBytes, perSender: senderBytes }, onChange);
    this.#unauthenticated = new BodyBudget(
      { total: strangerBytes, perSender: strangerAddressBytes },
      onChange,
    );
  }

  /** The account of a request: of a sender without a key, or of one who is known, with the app whose key it has. */
  open(address: string, sender: BodySender) {
    const origin = `address ${originKey(address)}`;
    if (!sender) return this.#unauthenticated.open([origin]);
    return this.#authenticated.open(sender.appId === undefined ? [origin] : [origin, `app ${sender.appId}`]);
  }
}

/** Who sends a body, as far as that was proven before it is read; undefined for a sender without a key. */
export type BodySender = { appId?: string } | undefined;

/** How much is read of a body, and how it is refused. */
export interface ReadLimit {
  sender: BodySender;
  /** A body of this size or more is refused. */
  bytesBelow: number;
  /** Code 116 in place of 413 for a body below 20 MB. */
  isObject: boolean;
}

/** The body of one request: read at most once, and charged until the request is answered. */
export class RequestBody {
  readonly #ctx: Context;
  readonly #bodies: BodyMemory;
  #reader: BodyReader | undefined;
  #account: ReturnType<BodyMemory['open']> | undefined;

  constructor(ctx: Context, bodies: BodyMemory) {
    this.#ctx = ctx;
    this.#bodies = bodies;
  }

  /** As much as is read of a sender without a key, and whether that is all. Throws 415, 408, 107, 429 and 503. */
  async prefix(): Promise<{ text: string; isWhole: boolean }> {
    const reader = this.#open(undefined);
    const isWhole = await reader.fill(unauthenticatedBodyBytes + 1);
    return { text: reader.text(), isWhole };
  }

  /** The whole body as text. Throws 413 or 116 when it is too long, else as `prefix`. */
  async text({ sender, bytesBelow, isObject }: ReadLimit): Promise<string> {
    this.#refusePacked(sender);
    const limit = sender ? bytesBelow : Math.min(bytesBelow, unauthenticatedBodyBytes + 1);
    const announced = declaredBytes(this.#ctx.req) ?? 0;
    if (announced >= limit)
      throw bodyTooLarge({ bytes: announced, limit, isObject: isObject && sender !== undefined });
    const reader = this.#open(sender);
    if (!(await reader.fill(limit))) throw bodyTooLarge({ bytes: reader.bytes, limit, isObject });
    return reader.takeText();
  }

  /** Charges what was read so far to a sender who is known by now. Throws 429 and 503. */
  chargeTo(sender: BodySender): void {
    this.#open(sender);
  }

  /** Whether anybody began to read. */
  get isOpen(): boolean {
    return this.#reader !== undefined;
  }

  /** Charges for the values that a long text holds. Throws 107 where it exceeds the bounds of JSON, 429, 503. */
  chargeValues(text: string): void {
    const values = measureJson(text);
    if (values === undefined)
      throw new Refusal('malformedJson', { text: 'The JSON is nested too deeply or has too many values.' });
    if (text.length >= chargedLength) this.#account?.take(values * valueBytes);
  }

  #refusePacked(sender: BodySender): void {
    if (!sender && isCompressed(this.#ctx.req)) throw new Refusal('unsupportedMediaType');
  }

  #open(sender: BodySender): BodyReader {
    const { req, ip } = this.#ctx;
    this.#refusePacked(sender);
    const before = this.#account;
    const account = this.#bodies.open(ip, sender);
    if (this.#reader && before) this.#reader.chargeTo(account);
    this.#account = account;
    this.#reader ??= new BodyReader(req, { holding: account, timeoutMs: this.#bodies.limits.bodyMs });
    return this.#reader;
  }

  close(): void {
    this.#reader?.close();
    this.#account?.release();
  }
}

/** The refusal of a body that has at least `bytes`. */
export function bodyTooLarge({
  bytes,
  limit,
  isObject,
}: {
  bytes: number;
  limit: number;
  isObject: boolean;
}): Refusal {
  if (!isObject || bytes >= maxBodyBytes) return new Refusal('payloadTooLarge');
  return new Refusal('tooLarge', { text: `The body must be under ${limit} bytes.` });
}

/** Gives each request its intake, and releases what it holds when the request is answered, however that ends. */
export function attachRequestBody(bodies: BodyMemory): Middleware {
  return async (ctx, next) => {
    const intake = new RequestBody(ctx, bodies);
    ctx.state.intake = intake;
    try {
      await next();
    } finally {
      intake.close();
      if (!ctx.req.complete || intake.isOpen) discardRest(ctx.req, ctx.res);
    }
  };
}

/**
 * How long the rest of a refused body is read and thrown away. A connection that is closed under a sender who still writes
 * is reset, and the sender may never see the reply.
 */
const discardMs = 5_000;

function discardRest(request: IncomingMessage, response: ServerResponse): void {
  if (request.readableEnded) return;
  response.once('finish', () => {
    request.resume();
    if (request.complete) return;
    const timer = setTimeout(() => request.socket.destroy(), discardMs);
    request.once('close', () => clearTimeout(timer)).once('end', () => clearTimeout(timer));
  });
}
