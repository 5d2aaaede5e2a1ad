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

/** Most rows of an exported list. */
export const maxExported = 10_000;
/** Rows of a page of an export, the most that a list gives. */
export const exportPage = 200;

interface Page {
  results: unknown[];
  /** Cursor of the next page; null after the last one. */
  next: string | null;
}

/** Returns a reply as a page, where the operation answers without pages too. */
export function asPage<R extends { results: unknown[] }>(reply: R): Extract<R, Page> {
  if (isPage(reply)) return reply;
  throw new Error('the reply is no page');
}

const isPage = <R extends { results: unknown[] }>(reply: R): reply is Extract<R, Page> =>
  'next' in reply;

/** Reads the pages of a list one after the other, up to 10,000 rows. */
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

/** Apps whose names one call returns. */
const maxIds = 50;
/** Apps that a menu shows before a search. */
const menuSize = 50;
const staleMs = 30_000;
/** Interval of calls for what the server does not push. */
const refreshMs = 10_000;
/**
 * How often the page of a move asks, while it is shown: devices come in the hours after the switch.
 */
const moveInRefreshMs = 30_000;

/** Page of the apps that the person may see, by name. */
export const appsPage = (filters: AppFilters): CallInput<'listApps'> => ({
  query: { view: 'list', sort: 'name', limit: 200, ...filters },
});

/** Apps that the person may see, by name. */
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
 * The first apps of a menu, by name: those that a text finds; `hasMore` tells that a search is
 * needed for the others.
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
 * Returns a function that gives the name of one of these apps; the id of an app that is not known,
 * or not yet.
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

/** Returns the name of an app; its id until the name is known. */
export function useAppName(appId: string | undefined): string {
  return useAppNames([appId])(appId ?? '');
}

/** Creates an app, and returns its id. The reply has keys, which the page does not keep. */
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
 * State of an app, live while the page is visible; it asks from time to time where the stream is
 * lost.
 */
export function useOverview(appId: string) {
  const client = useQueryClient();
  const handlers = useMemo(
    () => ({
      overview: (data: unknown) => {
        // The reply to a call that began before the event is older than the event.
        void client.cancelQueries({ queryKey: ['overview', appId] });
        client.setQueryData(['overview', appId], data);
      },
    }),
    [client, appId],
  );
  const live = useLive(`overview:${appId}`, handlers);
  const overview = useQuery({
    queryKey: ['overview', appId],
    queryFn: ({ signal }) => call('getOverview', { query: { app: appId }, signal }),
    refetchInterval: live.isOpen || live.isHeld ? false : refreshMs,
  });
  const { refetch } = overview;
  // What changed between the first call and the opening of the stream has no event.
  useEffect(() => {
    if (live.isOpen) void refetch();
  }, [live.isOpen, refetch]);
  return { ...overview, live };
}

/** App with its options, without its keys. */
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
      client.setQueryData(['app', appId], app);
      void client.invalidateQueries({ queryKey: ['apps'] });
      void client.invalidateQueries({ queryKey: ['overview', appId] });
    },
  });
}

export type KeyName = Input<'getKey'>['path']['key'];

/** One key of an app, for owners; it is loaded only if the page shows it. */
export function useAppKey(appId: string, key: KeyName, isNeeded: boolean) {
  return useQuery({
    queryKey: ['app', appId, key],
    queryFn: ({ signal }) => call('getKey', { path: { appId, key }, signal }),
    enabled: isNeeded,
    gcTime: 0,
  });
}

/**
 * Replaces a key of an app; the old one stays valid for some seconds. Takes about a second: every
 * process has to know it.
 */
export function useKeyRotation(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ key, graceSeconds }: { key: KeyName; graceSeconds: number }) =>
      call('rotateKey', { path: { appId, key }, body: { graceSeconds } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['app', appId] }),
  });
}

/** How far the move of an app into this service is. */
export function useMoveIn(appId: string) {
  return useQuery({
    queryKey: ['move-in', appId],
    queryFn: ({ signal }) => call('getMoveIn', { path: { appId }, signal }),
    refetchInterval: moveInRefreshMs,
  });
}

/** Days of a report, both included, as `YYYY-MM-DD` in UTC. */
export interface Days {
  from: string;
  to: string;
}

/** Use of an app on some days. */
export const usageOf = (appId: string, days: Days): CallInput<'getUsage'> => ({
  path: { appId },
  query: { ...days },
});

/** Use of an app by day, oldest first. */
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

/** Use of the gateways of an app on a day in China. */
export function useQuotas(appId: string, day: string | undefined) {
  return useQuery({
    queryKey: ['quotas', appId, day],
    queryFn: ({ signal }) => call('getQuotas', { path: { appId }, query: { day }, signal }),
    placeholderData: keepPreviousData,
  });
}

/** Time after the last key until the server is asked. */
const restMs = 200;
/** Shorter texts would find a part of every name. */
const minSearchLength = 2;

/** Things of the service that have a text as id, token, name, address or number. */
export function useSearchHits(text: string) {
  const wanted = text.trim();
  const q = useSettled(wanted);
  const { data, error, isFetching } = useQuery({
    queryKey: ['search', q],
    queryFn: ({ signal }) => call('search', { query: { q }, signal }),
    enabled: q.length >= minSearchLength,
    placeholderData: keepPreviousData,
  });
  // A short text keeps the results of the one before.
  if (wanted.length < minSearchLength) return { hits: [], error: null, isBusy: false };
  return { hits: data?.results ?? [], error, isBusy: isFetching || q !== wanted };
}

/** Returns a value once it has stood still. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), restMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
