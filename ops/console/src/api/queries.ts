import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import type {
  Breaker,
  KeysetPage,
  ListedPush,
  Overview,
  QueueState,
} from '../../../../api/replies/admin/types.ts';
import type { PushFilters } from '../search.ts';
import { appPath, call, queryOf } from './client.ts';
import { useLive } from './live.ts';

/** Interval of calls for what the server does not push. */
const refreshMs = 10_000;

/** State of an app, live while the page is visible; it asks from time to time where the stream is lost. */
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
    queryFn: ({ signal }) => call<Overview>(`/overview${queryOf({ app: appId })}`, { signal }),
    refetchInterval: live.isOpen || live.isHeld ? false : refreshMs,
  });
  const { refetch } = overview;
  // What changed between the first call and the opening of the stream has no event.
  useEffect(() => {
    if (live.isOpen) void refetch();
  }, [live.isOpen, refetch]);
  return { ...overview, live };
}

/** Path of a page of pushes. */
export const pushesPath = (appId: string, { q, ...filters }: PushFilters): string =>
  appPath(appId, 'notifications') + queryOf({ limit: 50, text: q, ...filters });

export function usePushes(appId: string, filters: PushFilters) {
  const path = pushesPath(appId, filters);
  return useQuery({
    queryKey: ['pushes', path],
    queryFn: ({ signal }) => call<KeysetPage<ListedPush>>(path, { signal }),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
  });
}

export function useBreakers() {
  return useQuery({
    queryKey: ['breakers'],
    queryFn: ({ signal }) => call<{ results: Breaker[] }>('/breakers', { signal }),
    refetchInterval: refreshMs,
  });
}

export function useQueues() {
  return useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call<{ results: QueueState[] }>('/queues', { signal }),
    refetchInterval: refreshMs,
  });
}
