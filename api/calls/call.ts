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
import type { RunInnerCall } from '../services/batch/calls.ts';

/** Checked call of an endpoint. */
export interface Call<Q, B> {
  params: Record<string, string>;
  query: Q;
  body: B;
  /** Size of the body in the form that the caller sent. */
  bodyBytes: number;
  /**
   * `X-LC-Prod` for pushes. If present and not 1, it means `dev`
   * (protocol/push.md#environment-of-ios). Undefined if absent.
   */
  prodHeader: 'dev' | 'prod' | undefined;
  /**
   * `X-LC-Prod` for cloud functions. 0 means staging. Any other value, or none, means production.
   */
  stage: FunctionStage;
  sessionToken: string | undefined;
  remoteAddress: string;
  /** `User-Agent`. Empty if absent. */
  userAgent: string;
  /** Cookie of a console session. Present only for logins. */
  consoleCookie?: string | undefined;
  /** Id of a call of the admin API, for its log and audit. Empty for other calls. */
  requestId: string;
  /** Language of pages and error texts, by `Accept-Language`. */
  language: 'en' | 'zh';
  /**
   * Headers and body as sent, and the client's socket address. Present if the route has
   * `hasRawBody`.
   */
  raw?: { headers: Record<string, string>; text: string; socketAddress: string | undefined };
}

/** Checked call of an app, for routes with the access `app`, `push` or `master`. */
export interface AppCall<Q, B> extends Call<Q, B> {
  app: App;
  isMaster: boolean;
  /**
   * True if the call has the hook key of the app, which the app's function host sends
   * (protocol/functions.md#host-protocol).
   */
  hasHookKey: boolean;
  /** Body as sent. Present if the route has `forwardsBody`. */
  sent?: SentBody;
  /** Runs another call with the same keys and session, as if it were a separate request. */
  runInnerCall: RunInnerCall;
  /** Owner of the call's valid session token. Undefined if the route has no `session`. */
  session: SessionOwner | undefined;
}

/** Checked call of the admin API. */
export interface AdminCall<Q, B> extends Call<Q, B> {
  operator: Operator;
  /** `Idempotency-Key` and `X-Carillon-Explained`. Undefined if absent. */
  idempotencyKey: string | undefined;
  explained: string | undefined;
  /** Aborts if the caller closes the connection before the reply. */
  disconnected: AbortSignal;
}

/** Body that a route forwards without parsing it. */
export interface SentBody {
  /** Any JSON. `{}` if the body is empty. */
  text: string;
  /** Headers that name the client, its SDK and the proxies. */
  userAgent: string;
  clientAgent: string;
  via: string;
}

/**
 * Call before its route is known. `app` is absent for routes without an app, `operator` for routes
 * outside of the admin API.
 */
export type AnyCall = Call<unknown, unknown> &
  Partial<
    Pick<AdminCall<unknown, unknown>, 'operator' | 'idempotencyKey' | 'explained' | 'disconnected'>
  > &
  Partial<
    Pick<
      AppCall<unknown, unknown>,
      'app' | 'isMaster' | 'hasHookKey' | 'session' | 'sent' | 'runInnerCall'
    >
  >;

/**
 * Length of text that is written in one tick of the event loop. This is a few milliseconds of work.
 */
const maxLengthPerTick = 256 * 1024;

/**
 * Writes a reply as JSON. The rows of a list are written in several ticks, so that a list of
 * megabytes does not delay other calls.
 */
export async function replyText(body: object): Promise<string> {
  if (!('results' in body) || !Array.isArray(body.results)) return JSON.stringify(body);
  const rows: string[] = [];
  let length = 0;
  for (const row of body.results) {
    const text = JSON.stringify(row) ?? 'null';
    rows.push(text);
    length += text.length;
    if (length < maxLengthPerTick) continue;
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
 * Returns the value that the schema parses. Returns the value unchanged if there is no schema.
 * Throws error 107 or 111 with the name of the member.
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

/**
 * Returns the path of an error. For a union, returns the path of the first alternative with an
 * error inside.
 */
function pathOf(issue: z.core.$ZodIssue): PropertyKey[] {
  if (issue.code !== 'invalid_union') return issue.path;
  const inside = issue.errors.flatMap(([first]) =>
    first && first.path.length > 0 ? [first] : [],
  )[0];
  return inside ? [...issue.path, ...pathOf(inside)] : issue.path;
}

/**
 * Throws error 111 with the path of a text that PostgreSQL cannot store, such as a text with
 * U+0000.
 */
export function requireStorableTexts(value: unknown): void {
  const fault = unstorableText(value, '');
  if (fault) throw new Refusal('incorrectType', { text: fault });
}

/** Returns the refusal that a schema sets by `ctx.addIssue({ …, params: { refusal } })`. */
function refusalOf(issue: z.core.$ZodIssue): Refusal | undefined {
  if (issue.code !== 'custom') return undefined;
  const refusal: unknown = issue.params?.refusal;
  return refusal instanceof Refusal ? refusal : undefined;
}
