import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { KeysetPage, ListedMessage, SmsState } from '../../../../../api/replies/admin/types.ts';
import type { OutboxFilters } from '../../search.ts';
import { appPath, call, queryOf } from '../client.ts';

const refreshMs = 10_000;

/** Path of a page of the mails and SMS of an app, newest first. */
export const outboxPath = (appId: string, { kind, to, state, cursor }: OutboxFilters): string =>
  appPath(appId, 'outbox') + queryOf({ limit: 50, kind, to, state, cursor });

export function useOutbox(appId: string, filters: OutboxFilters) {
  const path = outboxPath(appId, filters);
  return useQuery({
    queryKey: ['outbox', path],
    queryFn: ({ signal }) => call<KeysetPage<ListedMessage>>(path, { signal }),
    refetchInterval: refreshMs,
    placeholderData: keepPreviousData,
  });
}

/** Sends a message again that failed or found no provider. */
export function useMessageRetry(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => call(appPath(appId, 'outbox', id, 'retry'), { method: 'POST' }),
    onSettled: () => client.invalidateQueries({ queryKey: ['outbox'] }),
  });
}

/** Balance and budgets of the SMS of an app, and the countries to which nothing is sent. */
export function useSmsState(appId: string) {
  return useQuery({
    queryKey: ['sms-state', appId],
    queryFn: ({ signal }) => call<SmsState>(appPath(appId, 'sms-state'), { signal }),
    refetchInterval: refreshMs,
  });
}
