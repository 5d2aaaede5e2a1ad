import { Readable } from 'node:stream';
import { z } from 'zod';
import type { Exchange } from '../../../api/middleware/request-log.ts';
import { refusalsOf } from '../../../api/openapi/operation.ts';
import { errorReply } from '../../../api/replies/common.ts';
import type { ReplyBody } from '../../../api/route.ts';

/** Collects replies that differ from the declaration of their route in `/openapi.json`. */
export class DeclaredReplies {
  #problems: string[] = [];

  /** Compares a reply with its declaration. */
  readonly check = (exchange: Exchange): void => {
    const problem = problemOf(exchange);
    if (problem !== undefined)
      this.#problems.push(`${exchange.method} ${exchange.path}: ${problem}`);
  };

  /** Throws an error that lists all undeclared replies since the last call. */
  throwIfAny(): void {
    const problems = this.#problems;
    this.#problems = [];
    if (problems.length === 0) return;
    throw new Error(
      `replies that \`reply\` or \`refusals\` of their route lack:\n${problems.join('\n')}`,
    );
  }
}

function problemOf(exchange: Exchange): string | undefined {
  return exchange.refusal ? problemOfRefusal(exchange) : problemOfReply(exchange);
}

/**
 * Checks the refusal of a request that reached no route. The middlewares decide about such
 * requests.
 */
function problemOfRefusal({ route, refusal, status, body, type }: Exchange): string | undefined {
  if (route && refusal && !refusalsOf(route).includes(refusal.kind))
    return `refused with \`${refusal.kind}\` (${refusal.status}, ${refusal.code}), which is not declared`;
  // Browsers get a page instead of some refusals.
  return type === 'application/json' ? mismatch(errorReply, body, status) : undefined;
}

function problemOfReply({ method, route, status, body, type }: Exchange): string | undefined {
  if (!route || status === 304) return undefined;
  const declared: ReplyBody | undefined = route.replies[status] ?? route.replies.default;
  if (!declared) return `status ${status} is not declared`;
  if ('contentType' in declared) {
    const [expected] = declared.contentType.split(';');
    return type === expected ? undefined : `content type ${type}, not ${expected}`;
  }
  if (type !== 'application/json') return `content type ${type}, not application/json`;
  // A HEAD request that reached no handler has no body (`writes` of its route).
  if (method === 'HEAD' && body === undefined) return undefined;
  return isComparable(body) ? mismatch(declared, body, status) : undefined;
}

/**
 * Maximum length of a compared reply, some thousand rows. Longer replies have more rows of the same
 * kind, and comparing them would delay the api.
 */
const maxLength = 1024 * 1024;

/** True if a body can be compared. The client has not yet read a stream. */
const isComparable = (body: unknown): boolean =>
  !(body instanceof Readable) && !(typeof body === 'string' && body.length > maxLength);

/** Returns the JSON value that the client gets. */
const jsonOf = (body: unknown): unknown =>
  typeof body === 'string' || Buffer.isBuffer(body) ? JSON.parse(String(body)) : body;

function mismatch(schema: z.ZodType, body: unknown, status: number): string | undefined {
  const result = schema.safeParse(jsonOf(body));
  return result.success ? undefined : `reply ${status}: ${z.prettifyError(result.error)}`;
}
