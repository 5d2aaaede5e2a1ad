import {
  keepPreviousData,
  useMutation,
  useQueries,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import type { CallInput, Input } from '../../../client/client.ts';
import type { AppFilters } from '../search.ts';
import { call } from './client.ts';
import { useLive } from './live.ts';
import { showState } from './queries.ts';

/** Maximum number of rows of an exported list. */
export const maxExported = 10_000;
/** Page size of an export. It is the maximum of the API. */
export const exportPage = 200;

interface Page {
  results: unknown[];
  /** Cursor of the next page. Null on the last page. */
  next: string | null;
}

/**
 * Narrows a reply to a page. Needed because some operations can also return a list without pages.
 */
export function asPage<R extends { results: unknown[] }>(reply: R): Extract<R, Page> {
  if (isPage(reply)) return reply;
  throw new Error('the reply is no page');
}

const isPage = <R extends { results: unknown[] }>(reply: R): reply is Extract<R, Page> =>
  'next' in reply;

/** Reads all pages of a list one after the other, up to 10,000 rows. */
export async function readPages<T>(
  read: (cursor: string | undefined) => Promise<{ results: T[]; next: string | null }>,
): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    rows.push(...page.results);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && rows.length < maxExported);
  return rows;
}

/** Maximum number of app names per call. */
const maxIds = 50;
/** Number of apps that a menu shows without a search. */
const menuSize = 50;
const staleMs = 30_000;
/** Poll interval for data that the event stream does not contain. */
const refreshMs = 10_000;
/** Poll interval of the move-in page. Devices arrive over several hours after the switch. */
const moveInRefreshMs = 30_000;

/** Call that lists the apps which the person may see. */
export const appsPage = ({ q, sort, cursor }: AppFilters): CallInput<'listApps'> => ({
  query: { view: 'list', sort: sort ?? 'name', limit: 200, q, cursor },
});

/** Apps that the person may see, by name or with the newest push first. */
export function useAppList(filters: AppFilters) {
  return useQuery({
    queryKey: ['apps', filters],
    queryFn: async ({ signal }) => {
      const page = asPage(await call('listApps', { ...appsPage(filters), signal }));
      return { ...page, results: page.results.filter((app) => 'devices' in app) };
    },
    placeholderData: keepPreviousData,
    staleTime: staleMs,
  });
}

/**
 * First apps for a menu, by name, that match the search text. `hasMore` is true if there are
 * further apps.
 */
export function useAppMenu(q = '') {
  const query = { view: 'names', limit: menuSize, q: q.trim() || undefined } as const;
  const { data } = useQuery({
    queryKey: ['apps', 'menu', query],
    queryFn: async ({ signal }) => asPage(await call('listApps', { query, signal })),
    placeholderData: keepPreviousData,
    staleTime: staleMs,
  });
  return { apps: data?.results ?? [], hasMore: data !== undefined && data.next !== null };
}

/**
 * Returns a function from app id to name. It returns the id itself if the name is unknown or not
 * yet loaded.
 */
export function useAppNames(
  appIds: readonly (string | null | undefined)[],
): (appId: string) => string {
  const ids = [...new Set(appIds)].filter((id) => typeof id === 'string' && id !== '').toSorted();
  const groups = Array.from({ length: Math.ceil(ids.length / maxIds) }, (_, at) =>
    ids.slice(at * maxIds, (at + 1) * maxIds).join(),
  );
  const queries = useQueries({
    queries: groups.map((group) => ({
      queryKey: ['apps', 'names', group],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        call('listApps', { query: { view: 'names', limit: maxIds, ids: group }, signal }),
      staleTime: staleMs,
    })),
  });
  const names = new Map<string, string>();
  for (const { data } of queries)
    for (const { appId, name } of data?.results ?? []) names.set(appId, name);
  return (appId) => names.get(appId) ?? appId;
}

/** Returns the name of an app, or its id until the name is loaded. */
export function useAppName(appId: string | undefined): string {
  return useAppNames([appId])(appId ?? '');
}

/** Creates an app and returns its id. Discards the keys in the reply. */
export function useAppCreation() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (name: string) => {
      const { appId } = await call('createApp', { body: { name } });
      return { appId };
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ['apps'] }),
  });
}

/**
 * State of an app. It is updated live while the page is visible. If the event stream is lost, it is
 * polled.
 */
export function useOverview(appId: string) {
  const client = useQueryClient();
  const handlers = useMemo(
    () => ({
      overview: (data: unknown) => showState(client, ['overview', appId], data),
    }),
    [client, appId],
  );
  const live = useLive(`overview:${appId}`, handlers);
  const overview = useQuery({
    queryKey: ['overview', appId],
    queryFn: ({ signal }) => call('getOverview', { query: { app: appId }, signal }),
    refetchInterval: live.isOpen || live.isPaused ? false : refreshMs,
  });
  const { refetch } = overview;
  // Loads the state again when the stream opens. Changes between the first call and this time cause
  // no event.
  useEffect(() => {
    if (live.isOpen) void refetch();
  }, [live.isOpen, refetch]);
  return { ...overview, live };
}

/** Poll interval of the pushes that are being sent, over all apps. */
const serviceRefreshMs = 5000;

/** State of all apps that the person may see. */
export function useServiceOverview() {
  return useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => call('getOverview', { signal }),
    refetchInterval: serviceRefreshMs,
  });
}

/** App with its options but without its keys. */
export function useApp(appId: string) {
  return useQuery({
    queryKey: ['app', appId],
    queryFn: ({ signal }) =>
      call('getApp', { path: { appId }, query: { view: 'options' }, signal }),
  });
}

type AppPatch = NonNullable<CallInput<'updateApp'>['body']>;

/** Changes the name or options of an app. */
export function useAppChange(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: AppPatch) =>
      call('updateApp', { path: { appId }, query: { view: 'options' }, body }),
    onSuccess: (app) => {
      showState(client, ['app', appId], app);
      void client.invalidateQueries({ queryKey: ['apps'] });
      void client.invalidateQueries({ queryKey: ['overview', appId] });
    },
  });
}

export type KeyName = Input<'getKey'>['path']['key'];

/** One key of an app, for owners. It is loaded only if the page shows it. */
export function useAppKey(appId: string, key: KeyName, isNeeded: boolean) {
  return useQuery({
    queryKey: ['app', appId, key],
    queryFn: ({ signal }) => call('getKey', { path: { appId, key }, signal }),
    enabled: isNeeded,
    gcTime: 0,
  });
}

/**
 * Replaces a key of an app. The old key stays valid for the given time. This takes about a second,
 * because every process must learn the new key.
 */
export function useKeyRotation(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ key, graceSeconds }: { key: KeyName; graceSeconds: number }) =>
      call('rotateKey', { path: { appId, key }, body: { graceSeconds } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['app', appId] }),
  });
}

/** Progress of moving an app to this service. */
export function useMoveIn(appId: string) {
  return useQuery({
    queryKey: ['move-in', appId],
    queryFn: ({ signal }) => call('getMoveIn', { path: { appId }, signal }),
    refetchInterval: moveInRefreshMs,
  });
}

/** Days of a report, as `YYYY-MM-DD` in UTC. Both days are included. */
export interface Days {
  from: string;
  to: string;
}

/** Call that reads the usage of an app by day. */
export const usageOf = (appId: string, days: Days): CallInput<'getUsage'> => ({
  path: { appId },
  query: { ...days },
});

/** Usage of an app by day, oldest first. */
export function useUsage(appId: string, days: Days) {
  return useQuery({
    queryKey: ['usage', appId, days],
    queryFn: async ({ signal }) => {
      const reply = await call('getUsage', { ...usageOf(appId, days), signal });
      return 'results' in reply ? reply.results : [reply];
    },
    placeholderData: keepPreviousData,
  });
}

export const reportOf = (appId: string, days: Days): CallInput<'getReport'> => ({
  path: { appId },
  query: { ...days },
});

/** Totals of an app by day, oldest first. */
export function useReport(appId: string, days: Days) {
  return useQuery({
    queryKey: ['report', appId, days],
    queryFn: ({ signal }) => call('getReport', { ...reportOf(appId, days), signal }),
    placeholderData: keepPreviousData,
  });
}

/** Usage of an app's gateway quotas on a day in China's time zone. */
export function useQuotas(appId: string, day: string | undefined) {
  return useQuery({
    queryKey: ['quotas', appId, day],
    queryFn: ({ signal }) => call('getQuotas', { path: { appId }, query: { day }, signal }),
    placeholderData: keepPreviousData,
  });
}

/** Delay after the last keystroke before the search starts. */
const searchDelayMs = 200;
/** Shorter texts would match too many names. */
const minSearchLength = 2;

/** Search results: objects whose id, token, name, address or number matches the text. */
export function useSearchHits(text: string) {
  const searchText = text.trim();
  const q = useDebounced(searchText);
  const { data, error, isFetching } = useQuery({
    queryKey: ['search', q],
    queryFn: ({ signal }) => call('search', { query: { q }, signal }),
    enabled: q.length >= minSearchLength,
    placeholderData: keepPreviousData,
  });
  // Hides the results of the previous text.
  if (searchText.length < minSearchLength) return { hits: [], error: null, isBusy: false };
  return { hits: data?.results ?? [], error, isBusy: isFetching || q !== searchText };
}

/** Returns a value after it has stayed unchanged for a moment. */
export function useDebounced(value: string): string {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), searchDelayMs);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}
