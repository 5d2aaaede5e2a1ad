import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Middleware } from 'koa';
import { systemClock } from '../../shared/clock.ts';
import { networkOf } from '../../shared/domain/addresses.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { measureJson } from '../../shared/domain/json.ts';
import { detail } from '../../shared/domain/texts/texts.ts';
import { BodyBudget, type BodyReservation } from '../../shared/http/body/budget.ts';
import {
  declaredBytes,
  defaultBodyMs,
  isCompressed,
  type ReadOptions,
  readBeginning,
  readText,
} from '../../shared/http/body/reader.ts';
import { maxBodyBytes, smallBytes } from '../route.ts';

const mb = 1024 * 1024;

/** Limits of all request bodies of one process. */
export interface BodyLimits {
  /** Time in which a body must arrive. */
  bodyMs: number;
  /** Bytes in memory for senders with a key: six batches of the maximum size. */
  totalBytes: number;
  /**
   * Share of `totalBytes` for one app, and for one IP address. Half, so that one sender cannot use
   * all memory.
   */
  senderBytes: number;
  /**
   * Bytes in memory for senders without a key: a thousand requests. Separate, so that senders
   * without a key use no memory of other senders.
   */
  unauthenticatedBytes: number;
  /** Share of `unauthenticatedBytes` for one IP address. */
  unauthenticatedIpBytes: number;
}

const defaultBodyLimits: BodyLimits = {
  bodyMs: defaultBodyMs,
  totalBytes: 128 * mb,
  senderBytes: 64 * mb,
  unauthenticatedBytes: 16 * mb,
  unauthenticatedIpBytes: mb,
};

/** Maximum number of bytes that are read from a sender without a key. */
const unauthenticatedBodyBytes = smallBytes;

/**
 * Bytes of a parsed value in addition to its text. This is the size of an object with one member.
 */
const valueBytes = 100;
/** Length of a text from which the memory of its values is counted. */
const chargedLength = 64 * 1024;

/** Memory for the request bodies of this process, with its limits. */
export class BodyMemory {
  readonly limits: BodyLimits;
  readonly #authenticated: BodyBudget;
  readonly #unauthenticated: BodyBudget;

  /** `onChange` is called with the number of bytes that are added or removed. */
  constructor(limits: Partial<BodyLimits> = {}, onChange?: (bytes: number) => void) {
    this.limits = { ...defaultBodyLimits, ...limits };
    const { totalBytes, senderBytes, unauthenticatedBytes, unauthenticatedIpBytes } = this.limits;
    const unauthenticated = { total: unauthenticatedBytes, perSender: unauthenticatedIpBytes };
    this.#authenticated = new BodyBudget({ total: totalBytes, perSender: senderBytes }, onChange);
    this.#unauthenticated = new BodyBudget(unauthenticated, onChange);
  }

  /**
   * Opens the memory account of a request. It counts against the IP address and, with a key,
   * against the app.
   */
  open(ipAddress: string, sender: BodySender) {
    const origin = `address ${networkOf(ipAddress)}`;
    if (!sender) return this.#unauthenticated.open([origin]);
    return this.#authenticated.open(
      sender.appId === undefined ? [origin] : [origin, `app ${sender.appId}`],
    );
  }
}

/**
 * Sender of a body, authenticated before the body is read. Undefined for a sender without a key.
 */
export type BodySender = { appId?: string } | undefined;

/** Limit of a body, and how a larger body is refused. */
export interface ReadLimit {
  sender: BodySender;
  /** Bodies of this size or more are refused. */
  bytesBelow: number;
  /** True if a body below 20 MB gets 116 instead of 413. */
  isObject: boolean;
}

/** Body of one request. It is read once and counts against the memory until the reply is sent. */
export class RequestBody {
  readonly #ctx: Context;
  readonly #bodies: BodyMemory;
  #account: BodyReservation | undefined;
  #endsAtMs: number | undefined;

  constructor(ctx: Context, bodies: BodyMemory) {
    this.#ctx = ctx;
    this.#bodies = bodies;
  }

  /**
   * Reads as many bytes as a sender without a key may send. Returns the text and whether the body
   * is complete. Throws errors 415, 408, 107, 429 and 503.
   */
  prefix(): Promise<{ text: string; isWhole: boolean }> {
    return readBeginning(this.#ctx.req, this.#open(undefined, unauthenticatedBodyBytes + 1));
  }

  /** Reads the whole body as text. Throws error 413 or 116 if it is too long, and as `prefix`. */
  async text({ sender, bytesBelow, isObject }: ReadLimit): Promise<string> {
    this.#refusePacked(sender);
    const limit = sender ? bytesBelow : Math.min(bytesBelow, unauthenticatedBodyBytes + 1);
    const announced = declaredBytes(this.#ctx.req) ?? 0;
    if (announced >= limit)
      throw bodyTooLarge({ bytes: announced, limit, isObject: isObject && sender !== undefined });
    // The beginning that `prefix` read is read again.
    this.#account?.release();
    try {
      return await readText(this.#ctx.req, this.#open(sender, limit));
    } catch (error) {
      if (error instanceof Refusal && error.kind === 'payloadTooLarge')
        throw bodyTooLarge({ bytes: limit, limit, isObject });
      throw error;
    }
  }

  /**
   * Moves the bytes already read to the account of the authenticated sender. Throws errors 429 and
   * 503.
   */
  chargeTo(sender: BodySender): void {
    const bytes = this.#account?.bytes ?? 0;
    this.#account?.release();
    this.#open(sender, bytes).reservation.take(bytes);
  }

  /** True if reading has started. */
  get isOpen(): boolean {
    return this.#account !== undefined;
  }

  /**
   * Counts the memory of the values of a long text. Throws error 107 if the JSON is too deep or has
   * too many values, 429, 503.
   */
  chargeValues(text: string): void {
    const values = measureJson(text);
    if (values === undefined) throw new Refusal('malformedJson', { text: detail('tooDeep') });
    if (text.length >= chargedLength) this.#account?.take(values * valueBytes);
  }

  #refusePacked(sender: BodySender): void {
    if (!sender && isCompressed(this.#ctx.req)) throw new Refusal('unsupportedMediaType');
  }

  /** Opens the account of the sender. The time limit starts with the first read of the body. */
  #open(sender: BodySender, bytesBelow: number): ReadOptions {
    this.#refusePacked(sender);
    const reservation = this.#bodies.open(this.#ctx.ip, sender);
    this.#account = reservation;
    const now = systemClock.monotonicMs();
    this.#endsAtMs ??= now + this.#bodies.limits.bodyMs;
    return { bytesBelow, reservation, timeoutMs: this.#endsAtMs - now };
  }

  close(): void {
    this.#account?.release();
  }
}

/** Returns the refusal of a body that has at least `bytes`. */
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
  return new Refusal('tooLarge', { text: detail('bodyBelow', { limit }) });
}

/** Attaches a `RequestBody` to each request, and frees its memory when the request ends. */
export function attachRequestBody(bodies: BodyMemory): Middleware {
  return async (ctx, next) => {
    const requestBody = new RequestBody(ctx, bodies);
    ctx.state.requestBody = requestBody;
    try {
      await next();
    } finally {
      requestBody.close();
      if (!ctx.req.complete || requestBody.isOpen) discardRest(ctx.req, ctx.res);
    }
  };
}

/**
 * Time for which the rest of a refused body is read and discarded. If the connection were closed
 * while the sender still writes, it would be reset, and the sender might not receive the reply.
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
