import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { FailureGroup, KeysetPage, PushFailure, Results } from '../../../../api/replies/admin/types.ts';
import type { FailureFilters } from '../search.ts';
import { appPath, call, queryOf } from './client.ts';

const refreshMs = 5000;

interface OfPush {
  appId: string;
  pushId: string;
  /** Whether further failures may come. */
  isOpen: boolean;
}

/** Failures of a push by cause, the most frequent first. */
export function useFailureGroups({ appId, pushId, isOpen }: OfPush) {
  return useQuery({
    queryKey: ['failure-groups', appId, pushId],
    queryFn: ({ signal }) =>
      call<Results<FailureGroup>>(appPath(appId, 'notifications', pushId, 'failures', 'summary'), { signal }),
    refetchInterval: isOpen ? refreshMs : false,
  });
}

/** Devices that a push did not reach, of one cause. */
export function useFailures({ appId, pushId }: OfPush, filters: FailureFilters) {
  const path = appPath(appId, 'notifications', pushId, 'failures') + queryOf({ limit: 50, ...filters });
  return useQuery({
    queryKey: ['failures', path],
    queryFn: ({ signal }) => call<KeysetPage<PushFailure>>(path, { signal }),
    enabled: filters.connector !== undefined,
    placeholderData: keepPreviousData,
  });
}
