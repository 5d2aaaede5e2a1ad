import type { Readable } from 'node:stream';
import { type ErrorName, Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { type Json, measureJson, parseJson } from '../../../shared/domain/json.ts';
import { BodyBudget } from '../../../shared/http/body/budget.ts';
import { type BatchReply, writeReply } from '../batch/reply.ts';

/**
 * Reads what function hosts answer: results, errors, replies of hooks and lists of names. The text
 * decides whether an answer is JSON, not its `Content-Type`: the engine for Go sends `text/plain`,
 * the engine for PHP `application; charset=utf-8;` (protocol/functions.md#answers-of-a-host).
 */

const mb = 1024 * 1024;

/** Bytes of answers in memory: of one process, and of one app. */
const answerLimits = { total: 128 * mb, perSender: 64 * mb };

/** Byte order mark, which files of PHP may print before the answer. */
const mark = '\u{feff}';
const withoutMark = (text: string): string => (text.startsWith(mark) ? text.slice(1) : text);

/** Returns the JSON value of an answer; undefined for an answer that is no whole JSON text. */
export function hostValue(text: string): Json | undefined {
  try {
    return parseJson(withoutMark(text));
  } catch {
    return undefined;
  }
}

/** Returns the cause why a text is not forwarded as JSON; undefined for JSON. */
function faultOf(text: string): string | undefined {
  if (text.trim() === '') return 'The function host gave an empty answer.';
  if (measureJson(text) === undefined) return 'The answer of the function host has too many values.';
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return 'The function host gave an answer that is no whole JSON text.';
  }
}

/**
 * Answers of function hosts on their way to a caller. They are held whole, since half an
 * answer is no answer.
 */
export class HostAnswers {
  readonly #budget = new BodyBudget(answerLimits);

  /** Bytes in memory now. */
  get heldBytes(): number {
    return this.#budget.bytes;
  }

  /**
   * Reads an answer of an app's host and returns its JSON text unchanged; its memory counts until
   * it is sent. Throws 502 for an answer that is empty, not UTF-8, no JSON, or broken off; 429 when
   * the answers of the app, 503 when those of the process take too much memory.
   */
  async read(appId: string, body: Readable): Promise<BatchReply> {
    const account = this.#budget.open([`app ${appId}`]);
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of body) {
        const bytes = Buffer.from(chunk);
        account.take(bytes.length);
        chunks.push(bytes);
      }
      const text = decoded(Buffer.concat(chunks));
      const fault = text === undefined ? 'The answer of the function host is not UTF-8.' : faultOf(text);
      if (text === undefined || fault !== undefined) throw refuse('badGateway', fault);
      return writeReply({ begin: '', parts: [text], end: '' }, () => account.release());
    } catch (error) {
      account.release();
      if (error instanceof Refusal) throw full.has(error.kind) ? fullRefusal(error) : error;
      throw refuse('badGateway', 'The answer of the function host broke off, or is too large.');
    }
  }
}

const full: ReadonlySet<ErrorName> = new Set(['tooManyRequests', 'unavailable']);

const fullRefusal = ({ kind }: Refusal): Refusal =>
  new Refusal(kind, {
    text: 'The function ran. Too many large answers of functions are on their way.',
    retryAfterSeconds: 1,
  });

/** Decodes UTF-8 and removes a byte order mark; undefined for other bytes. */
function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
