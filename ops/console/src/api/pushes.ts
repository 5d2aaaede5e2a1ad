import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type CallInput, type Input, JsonText } from '../../../client/client.ts';
import type { RecurringPush } from '../../../client/operations.ts';
import type { PushFilters, UndeliveredSearch } from '../search.ts';
import { call } from './client.ts';

const refreshMs = 10_000;

/** Call that lists a page of an app's pushes, newest first. */
export const pushesPage = (
  appId: string,
  { q, recurring, ...filters }: PushFilters,
): CallInput<'listAppPushes'> => ({
  path: { appId },
  query: {
    limit: 50,
    text: q,
    recurring: recurring === undefined ? undefined : Number(recurring),
    ...filters,
  },
});

export function usePushes(appId: string, filters: PushFilters) {
  return useQuery({
    queryKey: ['pushes', appId, filters],
    queryFn: ({ signal }) => call('listAppPushes', { ...pushesPage(appId, filters), signal }),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
  });
}

/** Call that lists a page of the pushes that did not reach all recipients. */
export const undeliveredPage = (
  appId: string,
  filters: UndeliveredSearch,
): CallInput<'listUndelivered'> => ({
  path: { appId },
  query: { limit: 50, ...filters },
});

/** Finished pushes with failed, expired or capped recipients, newest first. */
export function useUndelivered(appId: string, filters: UndeliveredSearch) {
  return useQuery({
    queryKey: ['undelivered', appId, filters],
    queryFn: ({ signal }) =>
      call('listUndelivered', { ...undeliveredPage(appId, filters), signal }),
    placeholderData: keepPreviousData,
  });
}

/** Call that lists a page of the scheduled pushes, next one first. */
export const scheduledPage = (
  appId: string,
  cursor: string | undefined,
): CallInput<'listScheduledAppPushes'> => ({ path: { appId }, query: { limit: 50, cursor } });

export function useScheduled(appId: string, cursor: string | undefined) {
  return useQuery({
    queryKey: ['scheduled', appId, cursor],
    queryFn: ({ signal }) =>
      call('listScheduledAppPushes', { ...scheduledPage(appId, cursor), signal }),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
  });
}

/** Functions that reschedule and cancel scheduled pushes. Each reloads the list. */
export function useScheduledActions(appId: string) {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey: ['scheduled', appId] });
  const move = useMutation({
    mutationFn: ({ id, time }: { id: number; time: string }) =>
      call('moveScheduledAppPush', { path: { appId, id: String(id) }, body: { push_time: time } }),
    onSettled,
  });
  const cancel = useMutation({
    mutationFn: (id: number) => call('cancelScheduledAppPush', { path: { appId, id: String(id) } }),
    onSettled,
  });
  return { move, cancel };
}

/** Call that lists the recurring pushes of an app. There are at most 100. */
export const recurringPage = (appId: string): CallInput<'listRecurringPushes'> => ({
  path: { appId },
  query: { limit: 200 },
});

export function useRecurring(appId: string, isNeeded = true) {
  return useQuery({
    enabled: isNeeded,
    queryKey: ['recurring', appId],
    queryFn: ({ signal }) => call('listRecurringPushes', { ...recurringPage(appId), signal }),
    refetchInterval: refreshMs,
  });
}

/** Schedule of a recurring push, as a person writes it. The limits are in ISO 8601. */
export type ScheduleInput = Input<'previewRecurringPush'>['body'];

/** Next runs of a cron expression. Without `schedule`, makes no call. */
export function useNextTimes(appId: string, schedule: ScheduleInput | undefined) {
  return useQuery({
    queryKey: ['recurring-times', appId, schedule],
    queryFn: ({ signal }) =>
      call('previewRecurringPush', {
        path: { appId },
        body: schedule ?? { expression: '', timeZone: '' },
        signal,
      }),
    enabled: schedule !== undefined,
    retry: false,
  });
}

/** Functions that change recurring pushes. Each reloads the list. */
export function useRecurringActions(appId: string) {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey: ['recurring', appId] });
  const pathOf = (id: number) => ({ appId, id: String(id) });
  const enable = useMutation({
    mutationFn: ({ id, isEnabled }: Pick<RecurringPush, 'id' | 'isEnabled'>) =>
      call('changeRecurringPush', { path: pathOf(id), body: { isEnabled } }),
    onSettled,
  });
  const start = useMutation({
    mutationFn: (id: number) => call('startRecurringPush', { path: pathOf(id) }),
    onSettled,
  });
  const remove = useMutation({
    mutationFn: (id: number) => call('deleteRecurringPush', { path: pathOf(id) }),
    onSettled,
  });
  /** Takes the definition as JSON text, so that numbers keep their digits. */
  const save = useMutation({
    mutationFn: ({ id, text }: { id: number | undefined; text: string }) => {
      const body = new JsonText(text);
      return id === undefined
        ? call('createRecurringPush', { path: { appId }, body })
        : call('changeRecurringPush', { path: pathOf(id), body });
    },
    onSettled,
  });
  return { enable, start, remove, save };
}
