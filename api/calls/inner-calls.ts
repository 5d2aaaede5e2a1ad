import { Readable } from 'node:stream';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../shared/domain/json.ts';
import { sessionInQuery } from '../middleware/authentication.ts';
import { requirePlainPath } from '../middleware/plain-path.ts';
import type { Reply, Route } from '../route.ts';
import {
  failed,
  type InnerCall,
  type InnerOutcome,
  type ReplyAllowance,
  type RunInnerCall,
} from '../services/batch/calls.ts';
import { type AnyCall, type AppCall, replyText } from './call.ts';

/** Functions of the HTTP layer that a call inside a batch uses. */
export interface InnerDeps {
  find(method: string, path: string): { route: Route; params: Record<string, string> } | undefined;
  /** Checks the keys and the rate of the outer call for this route, and a session. */
  admit(
    route: Route,
    sessionToken: string | undefined,
  ): Promise<Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session'>>;
  /** Checks size, query and body, and runs the route. */
  run(route: Route, call: AnyCall): Promise<Reply>;
  /** Returns the refusal for an error. Logs an internal error. */
  toRefusal(error: unknown): Refusal;
}

type OuterCall = Omit<
  AnyCall,
  'params' | 'query' | 'body' | 'bodyBytes' | 'raw' | 'sent' | 'session'
>;

/**
 * Returns a function that runs calls inside one request. It finds only routes that an app key may
 * call.
 */
export function innerCallRunner(outer: OuterCall, deps: InnerDeps): RunInnerCall {
  return async (inner, allowance) => {
    try {
      return await runInnerCall(inner, outer, { ...deps, allowance });
    } catch (error) {
      return failed(deps.toRefusal(error));
    }
  };
}

async function runInnerCall(
  inner: InnerCall,
  outer: OuterCall,
  deps: InnerDeps & { allowance: ReplyAllowance },
): Promise<InnerOutcome> {
  requirePlainPath(inner.path);
  const found = inner.path.startsWith('/1.1/') ? deps.find(inner.method, inner.path) : undefined;
  if (!found?.route.isBatchable) throw new Refusal('notFound');
  const { route, params } = found;
  if (route.isBatch) throw new Refusal('invalidParameter', { text: 'A batch holds no batches.' });
  const sessionToken = sessionInQuery(inner.query) ?? outer.sessionToken;
  const admission = await deps.admit(route, sessionToken);
  if (route.isBodyRequired && inner.body === undefined) throw new Refusal('malformedJson');
  const body = bodyOf(inner);
  const bodyBytes = inner.body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body));
  const reply = await deps.run(route, {
    ...outer,
    ...admission,
    sessionToken,
    params,
    query: inner.query,
    body,
    bodyBytes,
  });
  const text = await textOf(reply, deps.allowance);
  return (reply.status ?? 200) < 400 ? { ok: true, text } : hostFailure(text);
}

function bodyOf({ body }: InnerCall): JsonObject {
  if (body === undefined) return {};
  if (!isJsonObject(body)) throw new Refusal('malformedJson');
  return body;
}

async function textOf({ body }: Reply, allowance: ReplyAllowance): Promise<string> {
  if (typeof body === 'string') return body;
  if (Buffer.isBuffer(body)) return body.toString();
  return body instanceof Readable ? largeText(body, allowance) : replyText(body);
}

/** Reads a large reply of a function host. Throws error 116 if it does not fit into the batch. */
async function largeText(body: Readable, allowance: ReplyAllowance): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    // Leaving the loop closes the stream.
    if (!allowance.growTo(bytes))
      throw refuse('tooLarge', 'The function ran; its answer is too large for a batch.');
  }
  return Buffer.concat(chunks).toString();
}

/** Returns the error of a function as an outcome. */
function hostFailure(text: string): InnerOutcome {
  const value = parseExactly(text);
  const { code, error } = isJsonObject(value) ? value : {};
  return {
    ok: false,
    error: { code: codeOf(code), error: typeof error === 'string' ? error : '' },
    refusal: undefined,
  };
}

/** Parses the code of a host's error. The Java engine writes some codes as texts. */
function codeOf(code: Json | undefined): number {
  if (typeof code === 'string' && /^\d{1,6}$/.test(code)) return Number(code);
  return typeof code === 'number' ? code : 1;
}
