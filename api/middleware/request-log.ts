import { Readable } from 'node:stream';
import type { Middleware } from 'koa';
import type { Refusal } from '../../shared/domain/errors/errors.ts';
import { PeerError } from '../../shared/http/result.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { contextOfHeaders, inSpan, isTracing, markFailed } from '../../shared/process/tracing.ts';
import type { Reply, Route } from '../route.ts';
import { toRefusal } from './errors.ts';

/**
 * Logs one line per request and records its duration. The line contains the route, not the URL,
 * because query strings contain conditions, tokens and phone numbers. Successes are logged at
 * debug, refusals at info.
 */
export function logRequests(log: Logger, metrics: Metrics): Middleware {
  return async (ctx, next) => {
    const startedAtMs = performance.now();
    metrics.httpInFlight.inc();
    await next().finally(() => metrics.httpInFlight.dec());
    const ms = performance.now() - startedAtMs;
    const route: string = typeof ctx._matchedRoute === 'string' ? ctx._matchedRoute : 'none';
    metrics.httpRequestSeconds.observe(
      { route, method: ctx.method, status: ctx.status },
      ms / 1000,
    );
    if (ctx.state.refusal) metrics.refusals.inc({ code: ctx.state.refusal.code });
    const line = {
      route,
      method: ctx.method,
      status: ctx.status,
      ms: Math.round(ms),
      app: ctx.state.appId,
      request: ctx.state.requestId,
    };
    if (ctx.status >= 500) log.error({ ...line, err: ctx.state.failure }, 'request failed');
    else if (ctx.state.refusal?.cause instanceof PeerError)
      log.warn(
        { ...line, code: ctx.state.refusal.code, err: ctx.state.refusal.cause },
        'request refused',
      );
    else if (ctx.state.refusal)
      log.info({ ...line, code: ctx.state.refusal.code }, 'request refused');
    else log.debug(line, 'request');
  };
}

/**
 * Creates a span for each request, which continues the caller's trace. The span contains the route,
 * not the URL, because query strings contain conditions, tokens and phone numbers.
 */
export function traceRequests(): Middleware {
  return (ctx, next) => {
    if (!isTracing()) return next();
    const attributes = { 'http.request.method': ctx.method };
    const parent = contextOfHeaders(ctx.headers);
    return inSpan(ctx.method, { kind: 'server', attributes, parent }, async (span) => {
      await next();
      if (!span) return;
      const route = typeof ctx._matchedRoute === 'string' ? ctx._matchedRoute : 'none';
      span.updateName(`${ctx.method} ${route}`);
      span.setAttributes({ 'http.route': route, 'http.response.status_code': ctx.status });
      if (typeof ctx.state.appId === 'string') span.setAttribute('carillon.app', ctx.state.appId);
      if (ctx.status >= 500) markFailed(span);
    });
  };
}

/** Request with its reply. Tests compare it with the declared replies of its route. */
export interface Exchange {
  method: string;
  path: string;
  /** Undefined if no route matched. */
  route: Route | undefined;
  status: number;
  type: string;
  body: unknown;
  refusal: Refusal | undefined;
}

type Report = (exchange: Exchange) => void;

/**
 * Reports each reply. Only tests pass a `report`. Without it, the api does not install this
 * middleware.
 */
export function reportExchanges(report: Report): Middleware {
  return async (ctx, next) => {
    await next();
    const { method, path, status, type, body, state } = ctx;
    report({ method, path, route: state.route, status, type, body, refusal: state.refusal });
  };
}

/** Runs a call inside a batch and reports its reply. */
export async function reportInnerCall(
  route: Route,
  run: () => Promise<Reply>,
  report: Report,
): Promise<Reply> {
  const { method, paths } = route;
  const shared = { method, path: `${paths[0]} in a batch`, route, type: 'application/json' };
  try {
    const reply = await run();
    const { body, status = route.status } = reply;
    const isReady = typeof body === 'string' || Buffer.isBuffer(body) || body instanceof Readable;
    report({ ...shared, status, body: isReady ? body : JSON.stringify(body), refusal: undefined });
    return reply;
  } catch (error) {
    const refusal = toRefusal(error);
    const body = { code: refusal.code, error: refusal.message };
    report({ ...shared, status: refusal.status, body, refusal });
    throw error;
  }
}
