import { Readable } from 'node:stream';
import { z } from 'zod';
import type { Exchange } from '../../../api/middleware/request-log.ts';
import { refusalsOf } from '../../../api/openapi/operation.ts';
import { errorReply } from '../../../api/replies/common.ts';
import type { ReplyBody } from '../../../api/route.ts';

/** Collects replies that differ from what their routes declare in `/openapi.json`. */
export class DeclaredReplies {
  #problems: string[] = [];

  /** Compares a reply with its declaration. */
  readonly check = (exchange: Exchange): void => {
    const problem = problemOf(exchange);
    if (problem !== undefined)
      this.#problems.push(`${exchange.method} ${exchange.path}: ${problem}`);
  };

  /** Throws an error that names every reply since the last call that its route does not declare. */
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

/** Requests that reach no route are refused as the middlewares decide. */
function problemOfRefusal({ route, refusal, status, body, type }: Exchange): string | undefined {
  if (route && refusal && !refusalsOf(route).includes(refusal.kind))
    return `refused with \`${refusal.kind}\` (${refusal.status}, ${refusal.code}), which is not declared`;
  // Browsers get a page in place of some refusals.
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
  // A HEAD that reached no handler has no body (`writes` of its route).
  if (method === 'HEAD' && body === undefined) return undefined;
  return isComparable(body) ? mismatch(declared, body, status) : undefined;
}

/**
 * Reply of some thousand rows. Longer ones have more rows of the same kind, and comparing them
 * delays the api.
 */
const maxLength = 1024 * 1024;

/** Tells whether a body can be compared now: the client has yet to read a stream. */
const isComparable = (body: unknown): boolean =>
  !(body instanceof Readable) && !(typeof body === 'string' && body.length > maxLength);

/** Returns the values of the text that the client gets. */
const jsonOf = (body: unknown): unknown =>
  typeof body === 'string' || Buffer.isBuffer(body) ? JSON.parse(String(body)) : body;

function mismatch(schema: z.ZodType, body: unknown, status: number): string | undefined {
  const result = schema.safeParse(jsonOf(body));
  return result.success ? undefined : `reply ${status}: ${z.prettifyError(result.error)}`;
}
