import type { Middleware } from 'koa';
import type { Refusal } from '../../shared/domain/errors/errors.ts';
import type { Route } from '../route.ts';

/** Request with its reply, as tests compare it with the declared replies of its route. */
export interface Exchange {
  method: string;
  path: string;
  /** Undefined where no route was reached. */
  route: Route | undefined;
  status: number;
  type: string;
  body: unknown;
  refusal: Refusal | undefined;
}

/** Reports each reply. Only tests pass a `report`: an api without one does not install this. */
export function reportExchanges(report: (exchange: Exchange) => void): Middleware {
  return async (ctx, next) => {
    await next();
    const { method, path, status, type, body, state } = ctx;
    report({ method, path, route: state.route, status, type, body, refusal: state.refusal });
  };
}
