import { QueryClient, type QueryKey } from '@tanstack/react-query';
import { ApiError } from './client.ts';

const mayRetry = (failures: number, error: unknown) =>
  failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500);

/**
 * Calls of the console and their replies. A change invalidates the queries that show it. A first
 * call that is still running may return the state before the change, and the library would keep
 * that reply, so such a call starts again.
 */
export class Queries extends QueryClient {
  constructor() {
    super({
      defaultOptions: { queries: { retry: mayRetry, refetchOnWindowFocus: true, staleTime: 2000 } },
    });
  }

  override async invalidateQueries(
    ...[filters = {}, options]: Parameters<QueryClient['invalidateQueries']>
  ): Promise<void> {
    const { predicate = () => true } = filters;
    await this.cancelQueries({
      ...filters,
      predicate: (query) => query.state.data === undefined && predicate(query),
    });
    await super.invalidateQueries(filters, options);
  }
}

/** Shows the state of a change or an event. Ends a running call, because its reply may be older. */
export function showState(client: QueryClient, queryKey: QueryKey, state: unknown): void {
  void client.cancelQueries({ queryKey, exact: true });
  client.setQueryData(queryKey, state);
}
