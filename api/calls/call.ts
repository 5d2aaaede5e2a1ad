import { setImmediate as nextTurn } from 'node:timers/promises';
import type { z } from 'zod';
import type { Operator } from '../../shared/domain/admin/operator.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { FunctionStage } from '../../shared/domain/apps/functions.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { issueText } from '../../shared/domain/errors/issue-text.ts';
import { unstorableText } from '../../shared/domain/json.ts';
import { refusalOfFault } from '../requests/checked.ts';
import type { SessionOwner } from '../services/accounts/sessions/sessions.ts';
import type { RunInnerCall } from '../services/batch/inner-call.ts';

/** Checked call of an endpoint. */
export interface Call<Q, B> {
  params: Record<string, string>;
  query: Q;
  body: B;
  /** Size of the body as it was sent. */
  bodyBytes: number;
  /**
   * `X-LC-Prod`: present and not 1 is `dev` (protocol/push.md#environment-of-ios); absent is
   * undefined.
   */
  prodHeader: 'dev' | 'prod' | undefined;
  /**
   * `X-LC-Prod` as cloud functions read it: 0 is staging; anything else, and its absence, is
   * production.
   */
  stage: FunctionStage;
  sessionToken: string | undefined;
  remoteAddress: string;
  /** `User-Agent`; empty without one. */
  userAgent: string;
  /** Cookie of a session of the console; of logins only. */
  consoleCookie?: string | undefined;
  /** Id of a call of the admin API, for its log and audit; empty for other calls. */
  requestId: string;
  /** Language for pages and error texts, by `Accept-Language`. */
  language: 'en' | 'zh';
  /**
   * Headers and body as sent, and the other end of the connection; present where the route has
   * `hasRawBody`.
   */
  raw?: { headers: Record<string, string>; text: string; socketAddress: string | undefined };
}

/** Checked call of an app: of routes with the access `app`, `push` or `master`. */
export interface AppCall<Q, B> extends Call<Q, B> {
  app: App;
  isMaster: boolean;
  /**
   * The call has the hook key of the app, which its function host sends
   * (protocol/functions.md#host-protocol).
   */
  hasHookKey: boolean;
  /** Body as sent; present where the route has `forwardsBody`. */
  sent?: SentBody;
  /** Performs another call with the same keys and session, as if it were a request of its own. */
  runInnerCall: RunInnerCall;
  /** Owner of the valid session token of the call; undefined where the route has no `session`. */
  session: SessionOwner | undefined;
}

/** Checked call of the admin API. */
export interface AdminCall<Q, B> extends Call<Q, B> {
  operator: Operator;
  /** `Idempotency-Key` and `X-Carillon-Explained`; undefined without them. */
  idempotencyKey: string | undefined;
  explained: string | undefined;
  /** Aborts when the caller closes the connection before the reply. */
  gone: AbortSignal;
}

/** Body that a route forwards without reading it. */
export interface SentBody {
  /** Any JSON; `{}` for an empty body. */
  text: string;
  /** Headers that name the client, its SDK and the proxies. */
  userAgent: string;
  clientAgent: string;
  via: string;
}

/**
 * Call before its route is known; calls of routes for no app have no `app`, those of others than
 * the admin API no `operator`.
 */
export type AnyCall = Call<unknown, unknown> &
  Partial<Pick<AdminCall<unknown, unknown>, 'operator' | 'idempotencyKey' | 'explained' | 'gone'>> &
  Partial<
    Pick<
      AppCall<unknown, unknown>,
      'app' | 'isMaster' | 'hasHookKey' | 'session' | 'sent' | 'runInnerCall'
    >
  >;

/** Length of text that is written in one tick of the event loop: a few milliseconds of work. */
const maxLengthPerTurn = 256 * 1024;

/**
 * Writes a reply as JSON. The rows of a list are written one by one and yield to other calls, which
 * a list of megabytes would otherwise delay.
 */
export async function replyText(body: object): Promise<string> {
  if (!('results' in body) || !Array.isArray(body.results)) return JSON.stringify(body);
  const rows: string[] = [];
  let length = 0;
  for (const row of body.results) {
    const text = JSON.stringify(row) ?? 'null';
    rows.push(text);
    length += text.length;
    if (length < maxLengthPerTurn) continue;
    length = 0;
    await nextTurn();
  }
  const members = Object.entries(body).flatMap(([name, value]) => {
    const text = name === 'results' ? `[${rows.join(',')}]` : JSON.stringify(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
  return `{${members.join(',')}}`;
}

/**
 * Returns the value as the schema parses it, or unchanged without a schema. Throws 107 or 111 with
 * the name of the member.
 */
export function checkSchema(
  schema: z.ZodType | undefined,
  value: unknown,
  where: 'query' | 'body',
): unknown {
  if (!schema) return value;
  const result = schema.safeParse(value, { error: issueText });
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  const refusal = result.error.issues.map(refusalOf).find((found) => found !== undefined);
  if (refusal) throw refusal;
  const text = path ? `${path}: ${issue?.message}` : `The ${where}: ${issue?.message}`;
  const own = issue && refusalOfFault(schema, { path: pathOf(issue), code: issue.code }, value);
  if (own && !own.isNamed) throw new Refusal(own.name);
  throw new Refusal(own?.name ?? (where === 'query' ? 'invalidParameter' : 'incorrectType'), {
    text,
  });
}

/** Returns the path of a fault; of a union, that of the first alternative with a fault inside. */
function pathOf(issue: z.core.$ZodIssue): PropertyKey[] {
  if (issue.code !== 'invalid_union') return issue.path;
  const inside = issue.errors.flatMap(([first]) =>
    first && first.path.length > 0 ? [first] : [],
  )[0];
  return inside ? [...issue.path, ...pathOf(inside)] : issue.path;
}

/** Throws 111 with the path of a text that the database cannot store, such as one with U+0000. */
export function requireStorableTexts(body: unknown): void {
  const fault = unstorableText(body, '');
  if (fault) throw new Refusal('incorrectType', { text: fault });
}

/** Returns the refusal that a schema names: `ctx.addIssue({ …, params: { refusal } })`. */
function refusalOf(issue: z.core.$ZodIssue): Refusal | undefined {
  if (issue.code !== 'custom') return undefined;
  const refusal: unknown = issue.params?.refusal;
  return refusal instanceof Refusal ? refusal : undefined;
}
