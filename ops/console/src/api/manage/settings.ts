import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { RotatedKey, ShownApp, ShownKey } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../client.ts';

const appKey = (appId: string) => ['app', appId];

/** App with its options, without its keys. */
export function useApp(appId: string) {
  return useQuery({
    queryKey: appKey(appId),
    queryFn: ({ signal }) => call<ShownApp>(`${appPath(appId)}?view=options`, { signal }),
  });
}

export type KeyName = RotatedKey['key'];

/** One key of an app, for owners; it is loaded only if the page shows it. */
export function useAppKey(appId: string, key: KeyName, isNeeded: boolean) {
  return useQuery({
    queryKey: [...appKey(appId), key],
    queryFn: ({ signal }) => call<ShownKey>(appPath(appId, 'keys', key), { signal }),
    enabled: isNeeded,
    gcTime: 0,
  });
}

export interface AppPatch {
  name?: string;
  options?: Record<string, unknown>;
}

/** Changes the name or options of an app. */
export function useAppChange(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: AppPatch) =>
      call<ShownApp>(`${appPath(appId)}?view=options`, { method: 'PATCH', body }),
    onSuccess: (app) => {
      client.setQueryData(appKey(appId), app);
      void client.invalidateQueries({ queryKey: ['apps'] });
      void client.invalidateQueries({ queryKey: ['overview', appId] });
    },
  });
}

/** Replaces a key of an app; the old one stays valid for some seconds. Takes about a second: every process has to know it. */
export function useKeyRotation(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ key, graceSeconds }: { key: KeyName; graceSeconds: number }) =>
      call<RotatedKey>(appPath(appId, 'keys', key, 'rotate'), { method: 'POST', body: { graceSeconds } }),
    onSuccess: () => client.invalidateQueries({ queryKey: appKey(appId) }),
  });
}
