import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { parseJson } from '../../shared/domain/json.ts';
import { BodyBudget } from '../../shared/http/body/budget.ts';
import { defaultBodyMs, isCompressed, readText } from '../../shared/http/body/reader.ts';

/**
 * Timeouts for slow clients. The timeout of the body is separate; it begins after the token was
 * checked.
 */
export const timing = {
  headersTimeout: 10_000,
  requestTimeout: 40_000,
  connectionsCheckingInterval: 2_000,
};

export interface ArgumentLimits {
  /** Time limit for the arguments to arrive. */
  bodyMs: number;
  /** Limit in bytes of one call's arguments, as in the api. */
  bytesBelow: number;
  /** Limit in bytes of the arguments of all running calls. */
  totalBytes: number;
}

const mb = 1024 * 1024;
const defaults: ArgumentLimits = {
  bodyMs: defaultBodyMs,
  bytesBelow: 20 * mb,
  totalBytes: 128 * mb,
};

/** Reads the arguments of calls, and limits the bytes of all running calls. */
export class ArgumentReader {
  readonly #limits: ArgumentLimits;
  readonly #budget: BodyBudget;

  constructor(limits: Partial<ArgumentLimits> = {}) {
    this.#limits = { ...defaults, ...limits };
    const { totalBytes } = this.#limits;
    this.#budget = new BodyBudget({ total: totalBytes, perSender: totalBytes });
  }

  /**
   * Calls `work` with the arguments as JSON text, `{}` for an empty body. They count towards the
   * limit until it returns. Throws 413, 415 (the api decompresses bodies), 408, 503, and 107 for
   * invalid JSON or JSON over its limits.
   */
  async use<T>(request: IncomingMessage, work: (text: string) => Promise<T>): Promise<T> {
    const { bodyMs: timeoutMs, bytesBelow } = this.#limits;
    if (isCompressed(request)) throw new Refusal('unsupportedMediaType');
    const reservation = this.#budget.open([]);
    try {
      const text = await readText(request, { bytesBelow, reservation, timeoutMs });
      return await work(checked(text || '{}'));
    } finally {
      reservation.release();
    }
  }
}

function checked(text: string): string {
  try {
    parseJson(text);
    return text;
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal('malformedJson', { cause });
  }
}
