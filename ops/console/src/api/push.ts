import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import type { CallInput, Input } from '../../../client/client.ts';
import type { PushDetail, PushFailure, PushProgress } from '../../../client/operations.ts';
import type { FailureFilters } from '../search.ts';
import { exportPage, readPages } from './apps.ts';
import { call } from './client.ts';
import { useLive } from './live.ts';
import { showState } from './queries.ts';

const pollMs = 5000;
/**
 * Poll interval after a cancellation. The remaining recipients are counted as dropped within some
 * seconds.
 */
const settlingPollMs = 1000;
const maxSettlingMs = 3_600_000;
const openStates: readonly PushDetail['state'][] = ['scheduled', 'queued', 'sending', 'paused'];

/** True if a push can still change. */
export const isOpenPush = ({ state }: Pick<PushDetail, 'state'>): boolean =>
  openStates.includes(state);

const openStatuses: readonly unknown[] = ['scheduled', 'in-queue', 'paused'];

const isOpenStatus = (progress: unknown): boolean =>
  typeof progress === 'object' &&
  progress !== null &&
  'status' in progress &&
  openStatuses.includes(progress.status);

/** True if a cancelled push is still counting its recipients. */
function isSettling(
  { state, finishedAt, updatedAt }: PushDetail,
  progress?: PushProgress,
): boolean {
  if (state !== 'cancelled' || !progress) return false;
  const ended = Object.values(progress.outcomes).reduce((sum, count) => sum + count, 0);
  const sinceMs = Date.now() - Date.parse(finishedAt ?? updatedAt);
  return ended < progress.devices && sinceMs < maxSettlingMs;
}

/** Messages on the device channel that are sent but not yet acknowledged. */
export const waitingOf = ({
  connectors,
  acked,
}: Pick<PushProgress, 'connectors' | 'acked'>): number =>
  Math.max(0, (connectors.channel?.sent ?? 0) - acked);

/** True if devices may still acknowledge a push that ended recently. */
function isAwaited({ finishedAt }: PushDetail, progress?: PushProgress): boolean {
  if (finishedAt === null || !progress) return false;
  return waitingOf(progress) > 0 && Date.now() - Date.parse(finishedAt) < maxSettlingMs;
}

const recallPollMs = 1000;

/** Record of a push. It is polled while a recall of the push runs. */
export function usePushRecord(appId: string, pushId: string) {
  return useQuery({
    queryKey: ['push', appId, pushId],
    queryFn: ({ signal }) => call('getAppPush', { path: { appId, id: pushId }, signal }),
    refetchInterval: ({ state }) =>
      state.data?.recall?.status === 'in-queue' ? recallPollMs : false,
  });
}

/** Record and progress of a push. They are updated live while the push is open. */
export function usePush(appId: string, pushId: string) {
  const client = useQueryClient();
  const record = usePushRecord(appId, pushId);
  const isOpen = record.data !== undefined && isOpenPush(record.data);
  const handlers = useMemo(
    () => ({
      progress: (data: unknown) => {
        showState(client, ['progress', appId, pushId], data);
        // If the push ends before the stream starts, no state event follows. So the record is
        // loaded again.
        if (!isOpenStatus(data))
          void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      },
      state: (data: unknown) => {
        showState(client, ['progress', appId, pushId], data);
        void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      },
      breakers: (data: unknown) => showState(client, ['breakers'], data),
    }),
    [client, appId, pushId],
  );
  const live = useLive(isOpen ? `push:${appId}/${pushId},breakers` : '', handlers);
  const progress = useQuery({
    queryKey: ['progress', appId, pushId],
    queryFn: ({ signal }) => call('getPushProgress', { path: { appId, id: pushId }, signal }),
    refetchInterval: ({ state }) => {
      if (live.isPaused) return false;
      if (record.data && isSettling(record.data, state.data)) return settlingPollMs;
      if (record.data && isAwaited(record.data, state.data)) return pollMs;
      return isOpen && !live.isOpen ? pollMs : false;
    },
  });
  useReload(progress.data?.status, () => void record.refetch());
  // The recipients in quiet hours and the next start are known only after planning. A record from
  // before planning is loaded again.
  useRefetch(progress.data?.planned === true && record.data?.isPlanned === false, record.refetch);
  // The push ended between the two replies. Neither an event nor a poll follows, so the progress is
  // loaded again.
  useRefetch(record.data !== undefined && !isOpen && isOpenStatus(progress.data), progress.refetch);
  return { record, progress, live };
}

/** Reloads a reply if it is older than another reply. */
function useRefetch(isBehind: boolean, refetch: () => unknown): void {
  useEffect(() => {
    if (isBehind) void refetch();
  }, [isBehind, refetch]);
}

/** Reloads the record if a call or an event reports a new state. */
function useReload(state: string | undefined, reload: () => void): void {
  const last = useRef(state);
  useEffect(() => {
    if (state !== undefined && last.current !== undefined && state !== last.current) reload();
    last.current = state;
  });
}

const timelineRefreshMs = 2000;

/** Finished recipients of a push per time step, by connector. */
export function useTimeline(appId: string, push: PushDetail) {
  return useQuery({
    queryKey: ['timeline', appId, push.objectId],
    queryFn: ({ signal }) =>
      call('getPushTimeline', { path: { appId, id: push.objectId }, signal }),
    refetchInterval: isOpenPush(push) ? timelineRefreshMs : false,
  });
}

/** Path parameters for the explanation of a device. */
export type ExplainedDevice = Input<'explainDevice'>['path'];

/** Explanation why a device did or did not get a push. */
export function useDeviceExplanation(path: ExplainedDevice) {
  return useQuery({
    queryKey: ['why', path],
    queryFn: ({ signal }) => call('explainDevice', { path, signal }),
  });
}

/**
 * Deletes the devices whose tokens the gateway reported as invalid but which were kept. Then
 * reloads the push.
 */
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

/** Pauses, resumes, cancels or approves a push. Then reloads the push. */
export function usePushControl(appId: string, pushId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (control: PushControl) => {
      await call(controls[control], { path: { appId, id: pushId } });
    },
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      void client.invalidateQueries({ queryKey: ['progress', appId, pushId] });
      void client.invalidateQueries({ queryKey: ['overview'] });
    },
  });
}

/** Changes the recipients per second of an unfinished push. Null removes the limit. */
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
  /** True if more failures may follow. */
  isOpen: boolean;
}

/** Failures of a push by cause, most frequent first. */
export function useFailureGroups({ appId, pushId, isOpen }: OfPush, isNeeded = true) {
  return useQuery({
    enabled: isNeeded,
    queryKey: ['failure-groups', appId, pushId],
    queryFn: ({ signal }) => call('summarizePushFailures', { path: { appId, id: pushId }, signal }),
    refetchInterval: isOpen ? pollMs : false,
  });
}

/** Call that lists a page of the devices that a push did not reach. */
const failuresPage = (
  { appId, pushId }: PushId,
  filters: FailureFilters,
  limit: number,
): CallInput<'listPushFailures'> => {
  const { connector, outcome, reason, cursor } = filters;
  return { path: { appId, id: pushId }, query: { connector, outcome, reason, cursor, limit } };
};

/** Reads the failures that match the filters, up to 10,000. */
export const readFailures = (push: PushId, filters: FailureFilters): Promise<PushFailure[]> =>
  readPages((cursor) =>
    call('listPushFailures', failuresPage(push, { ...filters, cursor }, exportPage)),
  );

/** Devices that a push did not reach for one cause. */
export function useFailures(push: OfPush, filters: FailureFilters) {
  const page = failuresPage(push, filters, 50);
  return useQuery({
    queryKey: ['failures', page],
    queryFn: ({ signal }) => call('listPushFailures', { ...page, signal }),
    enabled: filters.connector !== undefined,
    placeholderData: keepPreviousData,
  });
}

/** Message ids that gateways returned for a push, oldest first. */
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
 * Filters for the recipients of a redrive. Without filters, all recipients that can be retried are
 * selected.
 */
export type RedriveSelection = Pick<
  NonNullable<Input<'explainRedrive'>['body']>,
  'connector' | 'reason' | 'outcomes' | 'includeUnsure'
>;

/** Dry run of a redrive. Runs only if `isAsked` is true. */
export function useRedriveForecast(
  push: PushId,
  selection: RedriveSelection,
  isRequested: boolean,
) {
  const { appId, pushId } = push;
  return useQuery({
    queryKey: ['redrive', appId, pushId, selection],
    queryFn: ({ signal }) =>
      call('explainRedrive', { path: { appId, id: pushId }, body: selection, signal }),
    enabled: isRequested,
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

/** Replacement of a recalled push. Undefined recalls without a replacement. */
export type Replacement = NonNullable<Input<'recallPush'>['body']>['replacement'];

/** What a recall of a push would do. Runs only if `isRequested` is true. */
export function useRecallForecast(
  { appId, pushId }: PushId,
  replacement: Replacement,
  isRequested: boolean,
) {
  return useQuery({
    queryKey: ['recall', appId, pushId, replacement],
    queryFn: ({ signal }) =>
      call('recallPush', {
        path: { appId, id: pushId },
        body: { dryRun: true, ...(replacement && { replacement }) },
        signal,
      }),
    enabled: isRequested,
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}

/** Recalls a push. Then reloads the push, which contains the result. */
export function useRecall({ appId, pushId }: PushId) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (replacement: Replacement) =>
      call('recallPush', {
        path: { appId, id: pushId },
        body: replacement ? { replacement } : {},
      }),
    onSettled: () => client.invalidateQueries({ queryKey: ['push', appId, pushId] }),
  });
}
