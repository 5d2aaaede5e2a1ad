import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import type { CallInput, Input } from '../../../client/client.ts';
import type { PushDetail, PushFailure, PushProgress } from '../../../client/operations.ts';
import type { FailureFilters } from '../search.ts';
import { exportPage, readPages } from './apps.ts';
import { call } from './client.ts';
import { useLive } from './live.ts';

const pollMs = 5000;
/**
 * After a cancellation the recipients that have not left are counted as dropped, in some seconds.
 */
const settlingPollMs = 1000;
const maxSettlingMs = 3_600_000;
const openStates: readonly PushDetail['state'][] = ['scheduled', 'queued', 'sending', 'paused'];

/** Tells whether a push can still change. */
export const isOpenPush = ({ state }: Pick<PushDetail, 'state'>): boolean =>
  openStates.includes(state);

const openStatuses: readonly unknown[] = ['scheduled', 'in-queue', 'paused'];

const isOpenStatus = (progress: unknown): boolean =>
  typeof progress === 'object' &&
  progress !== null &&
  'status' in progress &&
  openStatuses.includes(progress.status);

/** Tells whether a cancelled push still counts its recipients. */
function isSettling(
  { state, finishedAt, updatedAt }: PushDetail,
  progress?: PushProgress,
): boolean {
  if (state !== 'cancelled' || !progress) return false;
  const ended = Object.values(progress.outcomes).reduce((sum, count) => sum + count, 0);
  const sinceMs = Date.now() - Date.parse(finishedAt ?? updatedAt);
  return ended < progress.devices && sinceMs < maxSettlingMs;
}

/** Messages of the device channel that are sent and that no device has acknowledged yet. */
export const waitingOf = ({
  connectors,
  acked,
}: Pick<PushProgress, 'connectors' | 'acked'>): number =>
  Math.max(0, (connectors.channel?.sent ?? 0) - acked);

/** Tells whether devices of the device channel may still acknowledge a push that ended lately. */
function isAwaited({ finishedAt }: PushDetail, progress?: PushProgress): boolean {
  if (finishedAt === null || !progress) return false;
  return waitingOf(progress) > 0 && Date.now() - Date.parse(finishedAt) < maxSettlingMs;
}

/** Record and progress of a push, live while it is open. */
export function usePush(appId: string, pushId: string) {
  const client = useQueryClient();
  const record = useQuery({
    queryKey: ['push', appId, pushId],
    queryFn: ({ signal }) => call('getAppPush', { path: { appId, id: pushId }, signal }),
  });
  const isOpen = record.data !== undefined && isOpenPush(record.data);
  const handlers = useMemo(
    () => ({
      progress: (data: unknown) => {
        client.setQueryData(['progress', appId, pushId], data);
        // A push that ends before the stream begins has no event of another state.
        if (!isOpenStatus(data))
          void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      },
      state: (data: unknown) => {
        client.setQueryData(['progress', appId, pushId], data);
        void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      },
      breakers: (data: unknown) => client.setQueryData(['breakers'], data),
    }),
    [client, appId, pushId],
  );
  const live = useLive(isOpen ? `push:${appId}/${pushId},breakers` : '', handlers);
  const progress = useQuery({
    queryKey: ['progress', appId, pushId],
    queryFn: ({ signal }) => call('getPushProgress', { path: { appId, id: pushId }, signal }),
    refetchInterval: ({ state }) => {
      if (live.isHeld) return false;
      if (record.data && isSettling(record.data, state.data)) return settlingPollMs;
      if (record.data && isAwaited(record.data, state.data)) return pollMs;
      return isOpen && !live.isOpen ? pollMs : false;
    },
  });
  useReload(progress.data?.status, () => void record.refetch());
  // Who waits for quiet hours, and the next start, are known with the recipients: a record that was
  // read before lacks them.
  useRefetch(progress.data?.planned === true && record.data?.isPlanned === false, record.refetch);
  // The push ended between the two replies: neither an event nor a poll follows.
  useRefetch(record.data !== undefined && !isOpen && isOpenStatus(progress.data), progress.refetch);
  return { record, progress, live };
}

/** Loads a reply again once it is behind another one. */
function useRefetch(isBehind: boolean, refetch: () => unknown): void {
  useEffect(() => {
    if (isBehind) void refetch();
  }, [isBehind, refetch]);
}

/** Loads the record when a call or an event finds another state than the one before. */
function useReload(state: string | undefined, reload: () => void): void {
  const last = useRef(state);
  useEffect(() => {
    if (state !== undefined && last.current !== undefined && state !== last.current) reload();
    last.current = state;
  });
}

const timelineRefreshMs = 2000;

/** Recipients that ended in each step of a push, by connector. */
export function useTimeline(appId: string, push: PushDetail) {
  return useQuery({
    queryKey: ['timeline', appId, push.objectId],
    queryFn: ({ signal }) =>
      call('getPushTimeline', { path: { appId, id: push.objectId }, signal }),
    refetchInterval: isOpenPush(push) ? timelineRefreshMs : false,
  });
}

/** Parameters of the path of the explanation of a device. */
export type ExplainedDevice = Input<'explainDevice'>['path'];

/** Why a device did or did not get a push. */
export function useDeviceExplanation(path: ExplainedDevice) {
  return useQuery({
    queryKey: ['why', path],
    queryFn: ({ signal }) => call('explainDevice', { path, signal }),
  });
}

/** Deletes the devices whose tokens a push found invalid and kept, then loads it again. */
export function useInvalidDeletion(appId: string, pushId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call('deleteInvalidDevices', { path: { appId, id: pushId } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['push', appId, pushId] }),
  });
}

const controls = {
  pause: 'pausePush',
  resume: 'resumePush',
  cancel: 'cancelPush',
  approve: 'approvePush',
} as const;

export type PushControl = keyof typeof controls;

/** Pauses, resumes, cancels or approves a push, then loads it again. */
export function usePushControl(appId: string, pushId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (control: PushControl) => {
      await call(controls[control], { path: { appId, id: pushId } });
    },
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      void client.invalidateQueries({ queryKey: ['progress', appId, pushId] });
    },
  });
}

/** Changes the recipients per second of a push that is not done, null for no limit. */
export function usePace(appId: string, pushId: string, onSuccess: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (rate: number | null) =>
      call('pacePush', { path: { appId, id: pushId }, body: { flow_control: rate } }),
    onSuccess,
    onSettled: () => client.invalidateQueries({ queryKey: ['push', appId, pushId] }),
  });
}

interface PushId {
  appId: string;
  pushId: string;
}

interface OfPush extends PushId {
  /** Whether further failures may come. */
  isOpen: boolean;
}

/** Failures of a push by cause, the most frequent first. */
export function useFailureGroups({ appId, pushId, isOpen }: OfPush) {
  return useQuery({
    queryKey: ['failure-groups', appId, pushId],
    queryFn: ({ signal }) => call('summarizePushFailures', { path: { appId, id: pushId }, signal }),
    refetchInterval: isOpen ? pollMs : false,
  });
}

/** Page of the devices that a push did not reach. */
const failuresPage = (
  { appId, pushId }: PushId,
  filters: FailureFilters,
  limit: number,
): CallInput<'listPushFailures'> => {
  const { connector, outcome, reason, cursor } = filters;
  return { path: { appId, id: pushId }, query: { connector, outcome, reason, cursor, limit } };
};

/** Reads the failures that the filters match, up to 10,000. */
export const readFailures = (push: PushId, filters: FailureFilters): Promise<PushFailure[]> =>
  readPages((cursor) =>
    call('listPushFailures', failuresPage(push, { ...filters, cursor }, exportPage)),
  );

/** Devices that a push did not reach, of one cause. */
export function useFailures(push: OfPush, filters: FailureFilters) {
  const page = failuresPage(push, filters, 50);
  return useQuery({
    queryKey: ['failures', page],
    queryFn: ({ signal }) => call('listPushFailures', { ...page, signal }),
    enabled: filters.connector !== undefined,
    placeholderData: keepPreviousData,
  });
}

/** Message ids that gateways gave for a push, oldest first. */
export function useGatewayMessages({ appId, pushId }: PushId, cursor: string | undefined) {
  return useQuery({
    queryKey: ['gateway-messages', appId, pushId, cursor],
    queryFn: ({ signal }) =>
      call('listGatewayMessages', {
        path: { appId, id: pushId },
        query: { limit: 50, cursor },
        signal,
      }),
    placeholderData: keepPreviousData,
  });
}

/**
 * Members of the body of a redrive that the page sets; none selects all recipients that can be sent
 * to again.
 */
export type RedriveSelection = Pick<
  NonNullable<Input<'explainRedrive'>['body']>,
  'connector' | 'reason' | 'outcomes' | 'includeUnsure'
>;

/** Dry run of a redrive; only while `isAsked`. */
export function useRedriveForecast(push: PushId, selection: RedriveSelection, isAsked: boolean) {
  const { appId, pushId } = push;
  return useQuery({
    queryKey: ['redrive', appId, pushId, selection],
    queryFn: ({ signal }) =>
      call('explainRedrive', { path: { appId, id: pushId }, body: selection, signal }),
    enabled: isAsked,
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}

/** Sends a push again to the selected recipients. */
export function useRedrive({ appId, pushId }: PushId, onSent: (objectId: string) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RedriveSelection) =>
      call('redriveAppPush', { path: { appId, id: pushId }, body }),
    onSuccess: ({ objectId }) => {
      void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      onSent(objectId);
    },
  });
}
