import type { IncomingMessage } from 'node:http';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { parseJson } from '../../shared/domain/json.ts';
import { BodyBudget } from '../../shared/http/body/budget.ts';
import { defaultBodyMs, isCompressed, readText } from '../../shared/http/body/reader.ts';

/**
 * Timeouts for slow clients. The body has a separate timeout, which starts after the token check.
 */
export const timing = {
  headersTimeout: 10_000,
  requestTimeout: 40_000,
  connectionsCheckingInterval: 2_000,
};

export interface ArgumentLimits {
  /** Time limit for receiving the arguments. */
  bodyMs: number;
  /** Size limit of one call's arguments in bytes. The api has the same limit. */
  bytesBelow: number;
  /** Size limit of the arguments of all running calls together, in bytes. */
  totalBytes: number;
}

const mb = 1024 * 1024;
const defaults: ArgumentLimits = {
  bodyMs: defaultBodyMs,
  bytesBelow: 20 * mb,
  totalBytes: 128 * mb,
};

/** Reads the arguments of calls and limits their total size. */
export class ArgumentReader {
  readonly #limits: ArgumentLimits;
  readonly #budget: BodyBudget;

  constructor(limits: Partial<ArgumentLimits> = {}) {
    this.#limits = { ...defaults, ...limits };
    const { totalBytes } = this.#limits;
    this.#budget = new BodyBudget({ total: totalBytes, perSender: totalBytes });
  }

  /**
   * Calls `work` with the arguments as JSON text, `{}` for an empty body. The arguments count
   * towards the size limit until `work` returns. Throws errors 413, 415 (for a compressed body: the
   * api has already decompressed it), 408, 503, and 107 if the JSON is invalid or exceeds its
   * limits.
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
