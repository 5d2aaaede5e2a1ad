import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { KeysetPage, UndeliveredPush } from '../../../../../api/replies/admin/types.ts';
import type { UndeliveredSearch } from '../../search.ts';
import { appPath, call, queryOf } from '../client.ts';

/** Path of a page of pushes that did not reach everybody. */
export const undeliveredPath = (appId: string, filters: UndeliveredSearch): string =>
  appPath(appId, 'undelivered') + queryOf({ limit: 50, ...filters });

/** Finished pushes with recipients that failed, expired or were capped, newest first. */
export function useUndelivered(appId: string, filters: UndeliveredSearch) {
  const path = undeliveredPath(appId, filters);
  return useQuery({
    queryKey: ['undelivered', path],
    queryFn: ({ signal }) => call<KeysetPage<UndeliveredPush>>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}
