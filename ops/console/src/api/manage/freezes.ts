import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { Freeze, Results } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../client.ts';

const refreshMs = 10_000;

/** Freeze of the service and those of the person's apps. */
export function useFreezes() {
  return useQuery({
    queryKey: ['freezes'],
    queryFn: ({ signal }) => call<Results<Freeze>>('/freezes', { signal }),
    refetchInterval: refreshMs,
  });
}

const pathOf = (appId: string | null): string => (appId === null ? '/freeze' : appPath(appId, 'freeze'));

/** Freezes an app, or the service (null), with a reason. */
export function useFreeze(appId: string | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) => call<Freeze>(pathOf(appId), { method: 'PUT', body: { reason } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['freezes'] }),
  });
}

/** Ends the freeze of an app, or of the service (null). */
export function useRelease(appId: string | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call<Freeze>(pathOf(appId), { method: 'DELETE' }),
    onSettled: () => client.invalidateQueries({ queryKey: ['freezes'] }),
  });
}
