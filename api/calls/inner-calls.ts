import { Readable } from 'node:stream';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../shared/domain/json.ts';
import type { AnyCall, AppCall, Reply, Route } from '../route.ts';
import {
  failed,
  type InnerCall,
  type InnerOutcome,
  type ReplyAllowance,
  type RunInnerCall,
} from '../services/batch/inner-call.ts';
import { replyText } from './reply-text.ts';

/** What an inner call needs of the HTTP side. */
export interface InnerDeps {
  find(method: string, path: string): { route: Route; params: Record<string, string> } | undefined;
  /** Keys, rate and session as of the outer call, for this route. */
  admit(
    route: Route,
  ): Promise<Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session'>>;
  /** Checks the body's size, query and body, and runs the route. */
  run(route: Route, call: AnyCall): Promise<Reply>;
  /** The refusal that an error means; notes what went wrong inside. */
  toRefusal(error: unknown): Refusal;
}

type Shared = Omit<AnyCall, 'params' | 'query' | 'body' | 'bodyBytes' | 'raw' | 'sent' | 'session'>;

/** Calls within one request, without a round trip. What nobody may call with an app's key is not to be found here. */
export function innerCallRunner(outer: Shared, deps: InnerDeps): RunInnerCall {
  return async (inner, room) => {
    try {
      return await runInnerCall(inner, outer, { ...deps, room });
    } catch (error) {
      return failed(deps.toRefusal(error));
    }
  };
}

async function runInnerCall(
  inner: InnerCall,
  outer: Shared,
  deps: InnerDeps & { room: ReplyAllowance },
): Promise<InnerOutcome> {
  const found = inner.path.startsWith('/1.1/') ? deps.find(inner.method, inner.path) : undefined;
  if (!found?.route.isInBatches) throw new Refusal('notFound');
  const { route, params } = found;
  if (route.isNesting) throw new Refusal('invalidParameter', { text: 'A batch holds no batches.' });
  const admission = await deps.admit(route);
  if (route.isBodyNeeded && inner.body === undefined) throw new Refusal('malformedJson');
  const body = bodyOf(inner);
  const bodyBytes = inner.body === undefined ? 0 : Buffer.byteLength(JSON.stringify(body));
  const reply = await deps.run(route, {
    ...outer,
    ...admission,
    params,
    query: inner.query,
    body,
    bodyBytes,
  });
  const answer = await textOf(reply, deps.room);
  return (reply.status ?? 200) < 400 ? { ok: true, text: answer } : foreignFailure(answer);
}

function bodyOf({ body }: InnerCall): JsonObject {
  if (body === undefined) return {};
  if (!isJsonObject(body)) throw new Refusal('malformedJson');
  return body;
}

async function textOf({ body }: Reply, room: ReplyAllowance): Promise<string> {
  if (typeof body === 'string') return body;
  if (Buffer.isBuffer(body)) return body.toString();
  return body instanceof Readable ? foreignJson(body, room) : replyText(body);
}

/** What a function host answers, as JSON that may stand inside ours. Throws 116 where it has no room, 502 for no JSON. */
async function foreignJson(body: Readable, room: ReplyAllowance): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(Buffer.from(chunk));
    bytes += chunks.at(-1)?.length ?? 0;
    // Leaving the loop ends the stream.
    if (!room.growTo(bytes))
      throw refuse('tooLarge', 'The function ran; its answer is too large for a batch.');
  }
  try {
    return JSON.stringify(parseJson(Buffer.concat(chunks).toString()));
  } catch (cause) {
    throw new Refusal('badGateway', { cause });
  }
}

/** What a function itself refused with. */
function foreignFailure(answer: string): InnerOutcome {
  const said: unknown = JSON.parse(answer);
  const { code, error } = isJsonObject(said) ? said : {};
  return {
    ok: false,
    error: { code: typeof code === 'number' ? code : 1, error: typeof error === 'string' ? error : '' },
    refusal: undefined,
  };
}
