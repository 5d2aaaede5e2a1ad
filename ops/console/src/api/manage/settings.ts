import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ShownApp } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../client.ts';

const appKey = (appId: string) => ['app', appId];

/** App with its options, and with its keys for owners. */
export function useApp(appId: string) {
  return useQuery({
    queryKey: appKey(appId),
    queryFn: ({ signal }) => call<ShownApp>(appPath(appId), { signal }),
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
    mutationFn: (body: AppPatch) => call<ShownApp>(appPath(appId), { method: 'PATCH', body }),
    onSuccess: (app) => {
      client.setQueryData(appKey(appId), app);
      void client.invalidateQueries({ queryKey: ['apps'] });
      void client.invalidateQueries({ queryKey: ['overview', appId] });
    },
  });
}
