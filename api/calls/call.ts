import type { Operator } from '../../shared/domain/admin/operator.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { FunctionStage } from '../../shared/domain/apps/functions.ts';
import type { SessionOwner } from '../services/accounts/sessions/sessions.ts';
import type { RunInnerCall } from '../services/batch/inner-call.ts';

/** Checked call of an endpoint. */
export interface Call<Q, B> {
  params: Record<string, string>;
  query: Q;
  body: B;
  /** Size of the body as it was sent. */
  bodyBytes: number;
  /** `X-LC-Prod`: present and not 1 is `dev` (protocol/push.md#environment-of-ios); absent is undefined. */
  prodHeader: 'dev' | 'prod' | undefined;
  /** `X-LC-Prod` as cloud functions read it: 0 is staging; anything else, and its absence, is production. */
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
  /** The call has the hook key of the app, which its function host sends (protocol/functions.md#host-protocol). */
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
 * Call before its route is known; calls of routes for no app have no `app`, those of others than the admin API no
 * `operator`.
 */
export type AnyCall = Call<unknown, unknown> &
  Partial<Pick<AdminCall<unknown, unknown>, 'operator' | 'idempotencyKey' | 'explained' | 'gone'>> &
  Partial<
    Pick<AppCall<unknown, unknown>, 'app' | 'isMaster' | 'hasHookKey' | 'session' | 'sent' | 'runInnerCall'>
  >;
