import type { IncomingMessage } from 'node:http';
import { BodyBudget } from '../../shared/body/budget.ts';
import { announcedBytes, BodyReader, defaultBodyMs, isPacked } from '../../shared/body/reader.ts';
import { Refusal } from '../../shared/domain/errors.ts';
import { parseJson } from '../../shared/domain/json.ts';

/** What slow senders are given. A body has its own time, which begins when the token is known to be right. */
export const timing = { headersTimeout: 10_000, requestTimeout: 40_000, connectionsCheckingInterval: 2_000 };

export interface ArgumentLimits {
  /** For arguments to arrive. */
  bodyMs: number;
  /** Bytes of one call's arguments: what the api passes on. */
  bytesBelow: number;
  /** Bytes of the arguments of all calls under way. */
  totalBytes: number;
}

const mb = 1024 * 1024;
const defaults: ArgumentLimits = { bodyMs: defaultBodyMs, bytesBelow: 20 * mb, totalBytes: 128 * mb };

/** Reads arguments of calls, and bounds the bytes of those under way. */
export class ArgumentReader {
  readonly #limits: ArgumentLimits;
  readonly #budget: BodyBudget;

  constructor(limits: Partial<ArgumentLimits> = {}) {
    this.#limits = { ...defaults, ...limits };
    const { totalBytes } = this.#limits;
    this.#budget = new BodyBudget({ total: totalBytes, perSender: totalBytes });
  }

  /**
   * Gives the arguments as JSON text to `work`, `{}` where there are none; they count until it ends. Throws 413, 415 (the api
   * unpacks), 408, 503, and 107 for what is no JSON or exceeds its bounds.
   */
  async use<T>(request: IncomingMessage, work: (text: string) => Promise<T>): Promise<T> {
    const { bodyMs: timeoutMs, bytesBelow } = this.#limits;
    if (isPacked(request)) throw new Refusal('unsupportedMediaType');
    if ((announcedBytes(request) ?? 0) >= bytesBelow) throw new Refusal('payloadTooLarge');
    const holding = this.#budget.open([]);
    const reader = new BodyReader(request, { holding, timeoutMs });
    try {
      if (!(await reader.fill(bytesBelow))) throw new Refusal('payloadTooLarge');
      return await work(checked(reader.takeText() || '{}'));
    } finally {
      reader.close();
      holding.release();
    }
  }
}

function checked(text: string): string {
  try {
    parseJson(text);
    return text;
  } catch (cause) {
    throw new Refusal('malformedJson', { cause });
  }
}
