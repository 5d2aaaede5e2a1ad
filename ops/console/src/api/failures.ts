import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type {
  FailureGroup,
  GatewayMessage,
  KeysetPage,
  PushFailure,
  Results,
} from '../../../../api/replies/admin/types.ts';
import type { FailureFilters } from '../search.ts';
import { appPath, call, queryOf } from './client.ts';
import { exportPage, readPages } from './manage/export.ts';

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

type PushId = Pick<OfPush, 'appId' | 'pushId'>;

const failuresPath = ({ appId, pushId }: PushId, filters: FailureFilters & { limit: number }) =>
  appPath(appId, 'notifications', pushId, 'failures') + queryOf({ ...filters });

/** Reads the failures that the filters match, up to 10,000. */
export const readFailures = (push: PushId, filters: FailureFilters): Promise<PushFailure[]> =>
  readPages((cursor) => failuresPath(push, { ...filters, cursor, limit: exportPage }));

/** Message ids that gateways gave for a push, oldest first. */
export function useGatewayMessages({ appId, pushId }: PushId, cursor: string | undefined) {
  const path = appPath(appId, 'notifications', pushId, 'messages') + queryOf({ limit: 50, cursor });
  return useQuery({
    queryKey: ['gateway-messages', path],
    queryFn: ({ signal }) => call<KeysetPage<GatewayMessage>>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** Devices that a push did not reach, of one cause. */
export function useFailures(push: OfPush, filters: FailureFilters) {
  const path = failuresPath(push, { limit: 50, ...filters });
  return useQuery({
    queryKey: ['failures', path],
    queryFn: ({ signal }) => call<KeysetPage<PushFailure>>(path, { signal }),
    enabled: filters.connector !== undefined,
    placeholderData: keepPreviousData,
  });
}
