import { useQuery } from '@tanstack/react-query';
import type { Results, SampledField, SampledValue } from '../../../../api/replies/admin/types.ts';
import { appPath, call } from './client.ts';

const staleMs = 60_000;

/** Members of the newest installations of an app, with their most frequent values. */
export function useFields(appId: string) {
  return useQuery({
    queryKey: ['fields', appId],
    queryFn: ({ signal }) => call<Results<SampledField>>(appPath(appId, 'fields'), { signal }),
    staleTime: staleMs,
    retry: false,
  });
}

/** Channels of the newest installations of an app, the most frequent first. */
export function useChannels(appId: string) {
  return useQuery({
    queryKey: ['channels', appId],
    queryFn: ({ signal }) => call<Results<SampledValue>>(appPath(appId, 'channels'), { signal }),
    staleTime: staleMs,
    retry: false,
  });
}
