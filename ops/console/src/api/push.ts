import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';
import type { PushDetail, PushProgress } from '../../../../api/replies/admin/types.ts';
import { appPath, call } from './client.ts';
import { useLive } from './live.ts';

const pollMs = 5000;
/** After a cancellation the recipients that have not left are counted as dropped, in some seconds. */
const settlingPollMs = 1000;
const maxSettlingMs = 3_600_000;
const openStates: readonly PushDetail['state'][] = ['scheduled', 'queued', 'sending', 'paused'];

/** Tells whether a push can still change. */
export const isOpenPush = ({ state }: Pick<PushDetail, 'state'>): boolean => openStates.includes(state);

const openStatuses: readonly unknown[] = ['scheduled', 'in-queue', 'paused'];

const isOpenStatus = (progress: unknown): boolean =>
  typeof progress === 'object' &&
  progress !== null &&
  'status' in progress &&
  openStatuses.includes(progress.status);

/** Tells whether a cancelled push still counts its recipients. */
function isSettling({ state, finishedAt, updatedAt }: PushDetail, progress?: PushProgress): boolean {
  if (state !== 'cancelled' || !progress) return false;
  const ended = Object.values(progress.outcomes).reduce((sum, count) => sum + count, 0);
  const sinceMs = Date.now() - Date.parse(finishedAt ?? updatedAt);
  return ended < progress.devices && sinceMs < maxSettlingMs;
}

/** Messages of the own channel that are sent and that no device has acknowledged yet. */
export const waitingOf = ({ connectors, acked }: Pick<PushProgress, 'connectors' | 'acked'>): number =>
  Math.max(0, (connectors.channel?.sent ?? 0) - acked);

/** Tells whether devices of the own channel may still acknowledge a push that ended lately. */
function isAwaited({ finishedAt }: PushDetail, progress?: PushProgress): boolean {
  if (finishedAt === null || !progress) return false;
  return waitingOf(progress) > 0 && Date.now() - Date.parse(finishedAt) < maxSettlingMs;
}

/** Record and progress of a push, live while it is open. */
export function usePush(appId: string, pushId: string) {
  const client = useQueryClient();
  const record = useQuery({
    queryKey: ['push', appId, pushId],
    queryFn: ({ signal }) => call<PushDetail>(appPath(appId, 'notifications', pushId), { signal }),
  });
  const isOpen = record.data !== undefined && isOpenPush(record.data);
  const handlers = useMemo(
    () => ({
      progress: (data: unknown) => {
        client.setQueryData(['progress', appId, pushId], data);
        // A push that ends before the stream begins has no event of another state.
        if (!isOpenStatus(data)) void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
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
    queryFn: ({ signal }) =>
      call<PushProgress>(appPath(appId, 'notifications', pushId, 'progress'), { signal }),
    refetchInterval: ({ state }) => {
      if (live.isHeld) return false;
      if (record.data && isSettling(record.data, state.data)) return settlingPollMs;
      if (record.data && isAwaited(record.data, state.data)) return pollMs;
      return isOpen && !live.isOpen ? pollMs : false;
    },
  });
  useReload(progress.data?.status, () => void record.refetch());
  // Who waits for quiet hours, and the next start, are known with the recipients: a record that was read before lacks them.
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

/** Deletes the devices whose tokens a push found invalid and kept, then loads it again. */
export function useInvalidDeletion(appId: string, pushId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      call<{ deleted: number }>(appPath(appId, 'notifications', pushId, 'delete-invalid'), {
        method: 'POST',
      }),
    onSettled: () => client.invalidateQueries({ queryKey: ['push', appId, pushId] }),
  });
}

export type PushControl = 'pause' | 'resume' | 'cancel' | 'approve';

/** Pauses, resumes, cancels or approves a push, then loads it again. */
export function usePushControl(appId: string, pushId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (control: PushControl) =>
      call(appPath(appId, 'notifications', pushId, control), { method: 'POST' }),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      void client.invalidateQueries({ queryKey: ['progress', appId, pushId] });
    },
  });
}
