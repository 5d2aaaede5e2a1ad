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
  /** Time for a body to arrive. */
  bodyMs: number;
  /** Bytes in memory of senders with a key: six batches of the largest size. */
  totalBytes: number;
  /**
   * Part of these for one app, and for one IP address: half, so that one sender cannot take all.
   */
  senderBytes: number;
  /**
   * Bytes in memory of senders without a key: a thousand requests. Separate, so that they take
   * nothing from the others.
   */
  unauthenticatedBytes: number;
  /** Part of these for one IP address. */
  unauthenticatedIpBytes: number;
}

const defaultBodyLimits: BodyLimits = {
  bodyMs: defaultBodyMs,
  totalBytes: 128 * mb,
  senderBytes: 64 * mb,
  unauthenticatedBytes: 16 * mb,
  unauthenticatedIpBytes: mb,
};

/** Bytes that are read from a sender without a key. */
const unauthenticatedBodyBytes = smallBytes;

/** Bytes that a parsed value takes beside its text: those of an object with one member. */
const valueBytes = 100;
/** Length of texts from which their values are charged. */
const chargedLength = 64 * 1024;

/** Memory for the request bodies of this process, with its limits. */
export class BodyMemory {
  readonly limits: BodyLimits;
  readonly #authenticated: BodyBudget;
  readonly #unauthenticated: BodyBudget;

  /** Calls `onChange` with the number of bytes that are added or removed. */
  constructor(limits: Partial<BodyLimits> = {}, onChange?: (bytes: number) => void) {
    this.limits = { ...defaultBodyLimits, ...limits };
    const { totalBytes, senderBytes, unauthenticatedBytes, unauthenticatedIpBytes } = this.limits;
    const unauthenticated = { total: unauthenticatedBytes, perSender: unauthenticatedIpBytes };
    this.#authenticated = new BodyBudget({ total: totalBytes, perSender: senderBytes }, onChange);
    this.#unauthenticated = new BodyBudget(unauthenticated, onChange);
  }

  /**
   * Opens the account of a request, which counts for its IP address and, with a key, for its app.
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
 * Sender of a body, as authenticated before the body is read; undefined for a sender without a key.
 */
export type BodySender = { appId?: string } | undefined;

/** Limit of a body, and the refusal of a larger one. */
export interface ReadLimit {
  sender: BodySender;
  /** A body of this size or more is refused. */
  bytesBelow: number;
  /** Code 116 in place of 413 for a body below 20 MB. */
  isObject: boolean;
}

/**
 * Body of one request, which is read once and counts against the memory until the reply is sent.
 */
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
   * Reads as much as a sender without a key may send, and tells whether that is all. Throws 415,
   * 408, 107, 429 and 503.
   */
  prefix(): Promise<{ text: string; isWhole: boolean }> {
    return readBeginning(this.#ctx.req, this.#open(undefined, unauthenticatedBodyBytes + 1));
  }

  /**
   * Reads the whole body as text. Throws 413 or 116 when it is too long, and the refusals of
   * `prefix`.
   */
  async text({ sender, bytesBelow, isObject }: ReadLimit): Promise<string> {
    this.#refusePacked(sender);
    const limit = sender ? bytesBelow : Math.min(bytesBelow, unauthenticatedBodyBytes + 1);
    const announced = declaredBytes(this.#ctx.req) ?? 0;
    if (announced >= limit)
      throw bodyTooLarge({ bytes: announced, limit, isObject: isObject && sender !== undefined });
    // What was read before is read once more.
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
   * Moves the bytes that were read to the account of the authenticated sender. Throws 429 and 503.
   */
  chargeTo(sender: BodySender): void {
    const bytes = this.#account?.bytes ?? 0;
    this.#account?.release();
    this.#open(sender, bytes).reservation.take(bytes);
  }

  /** Tells whether reading began. */
  get isOpen(): boolean {
    return this.#account !== undefined;
  }

  /**
   * Charges the values of a long text. Throws 107 when the JSON is too deep or has too many values,
   * 429, 503.
   */
  chargeValues(text: string): void {
    const values = measureJson(text);
    if (values === undefined) throw new Refusal('malformedJson', { text: detail('tooDeep') });
    if (text.length >= chargedLength) this.#account?.take(values * valueBytes);
  }

  #refusePacked(sender: BodySender): void {
    if (!sender && isCompressed(this.#ctx.req)) throw new Refusal('unsupportedMediaType');
  }

  /**
   * Opens the account of the sender. The time of the body begins with the first byte that is read
   * of it.
   */
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
 * Time for which the rest of a refused body is read and discarded. Closing the connection while the
 * sender still writes resets it, and the sender may not see the reply.
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
