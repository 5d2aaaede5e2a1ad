import { keepPreviousData, useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import type { AppName, AppSummary, KeysetPage } from '../../../../api/replies/admin/types.ts';
import type { AppFilters } from '../search.ts';
import { call, queryOf } from './client.ts';

/** Apps whose names one call returns. */
const maxIds = 50;
/** Apps that a menu shows before a search. */
const menuSize = 50;
const staleMs = 30_000;

/** Path of a page of apps. */
export const appsPath = (filters: AppFilters): string =>
  `/apps${queryOf({ view: 'list', sort: 'name', limit: 200, ...filters })}`;

/** Apps that the person may see, by name. */
export function useAppList(filters: AppFilters) {
  const path = appsPath(filters);
  return useQuery({
    queryKey: ['apps', path],
    queryFn: ({ signal }) => call<KeysetPage<AppSummary>>(path, { signal }),
    placeholderData: keepPreviousData,
    staleTime: staleMs,
  });
}

/**
 * The first apps of a menu, by name: those that a text finds; `hasMore` tells that a search is
 * needed for the others.
 */
export function useAppMenu(q = '') {
  const path = `/apps${queryOf({ view: 'names', limit: menuSize, q: q.trim() })}`;
  const { data } = useQuery({
    queryKey: ['apps', path],
    queryFn: ({ signal }) => call<KeysetPage<AppName>>(path, { signal }),
    placeholderData: keepPreviousData,
    staleTime: staleMs,
  });
  return { apps: data?.results ?? [], hasMore: data !== undefined && data.next !== null };
}

/**
 * Returns a function that gives the name of one of these apps; the id of an app that is not known,
 * or not yet.
 */
export function useAppNames(appIds: readonly (string | null | undefined)[]): (appId: string) => string {
  const ids = [...new Set(appIds)].filter((id) => typeof id === 'string' && id !== '').toSorted();
  const groups = Array.from({ length: Math.ceil(ids.length / maxIds) }, (_, at) =>
    ids.slice(at * maxIds, (at + 1) * maxIds).join(),
  );
  const queries = useQueries({
    queries: groups.map((group) => ({
      queryKey: ['apps', 'names', group],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call<KeysetPage<AppName>>(`/apps${queryOf({ view: 'names', limit: maxIds, ids: group })}`, {
          signal,
        }),
      staleTime: staleMs,
    })),
  });
  const names = new Map(
    queries.flatMap(({ data }) => data?.results ?? []).map(({ appId, name }) => [appId, name]),
  );
  return (appId) => names.get(appId) ?? appId;
}

/** Returns the name of an app; its id until the name is known. */
export function useAppName(appId: string | undefined): string {
  return useAppNames([appId])(appId ?? '');
}

/** Creates an app, and returns its id. The reply has keys, which the page does not keep. */
export function useAppCreation() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (name: string) => {
      const { appId } = await call<{ appId: string }>('/apps', { method: 'POST', body: { name } });
      return { appId };
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ['apps'] }),
  });
}
