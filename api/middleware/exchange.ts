import { Readable } from 'node:stream';
import type { Middleware } from 'koa';
import type { Refusal } from '../../shared/domain/errors/errors.ts';
import type { Reply, Route } from '../route.ts';
import { toRefusal } from './errors.ts';

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
