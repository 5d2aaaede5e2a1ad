import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { KeysetPage, ScheduledEntry } from '../../../../api/replies/admin/types.ts';
import { appPath, call, queryOf } from './client.ts';

const refreshMs = 10_000;

/** Path of a page of the pushes that wait for their time, the next one first. */
export const scheduledPath = (appId: string, cursor: string | undefined): string =>
  appPath(appId, 'scheduled') + queryOf({ limit: 50, cursor });

export function useScheduled(appId: string, cursor: string | undefined) {
  const path = scheduledPath(appId, cursor);
  return useQuery({
    queryKey: ['scheduled', appId, path],
    queryFn: ({ signal }) => call<KeysetPage<ScheduledEntry>>(path, { signal }),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
  });
}

/** Functions that move and cancel pushes that wait for their time; each loads the list again. */
export function useScheduledActions(appId: string) {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey: ['scheduled', appId] });
  const move = useMutation({
    mutationFn: ({ id, time }: { id: number; time: string }) =>
      call(appPath(appId, 'scheduled', id), { method: 'PATCH', body: { push_time: time } }),
    onSettled,
  });
  const cancel = useMutation({
    mutationFn: (id: number) => call(appPath(appId, 'scheduled', id), { method: 'DELETE' }),
    onSettled,
  });
  return { move, cancel };
}
