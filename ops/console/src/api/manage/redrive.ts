import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type {
  FailedReceipt,
  KeysetPage,
  MessageForecast,
  RedriveForecast,
  RedrivenReceipts,
} from '../../../../../api/replies/admin/types.ts';
import { appPath, call, queryOf } from '../client.ts';

interface OfPush {
  appId: string;
  pushId: string;
}

/** Members of the body of a redrive that the page sets; none selects all recipients that can be sent to again. */
export type RedriveSelection = Partial<Pick<RedriveForecast['causes'][number], 'connector' | 'reason'>> & {
  outcomes?: RedriveForecast['causes'][number]['outcome'][];
  /** Whether those that may have the message get it too. */
  includeUnsure?: boolean;
};

/** Dry run of a redrive; only while `isAsked`. */
export function useRedriveForecast(push: OfPush, selection: RedriveSelection, isAsked: boolean) {
  const path = appPath(push.appId, 'notifications', push.pushId, 'redrive', 'explain');
  return useQuery({
    queryKey: ['redrive', path, selection],
    queryFn: ({ signal }) => call<RedriveForecast>(path, { method: 'POST', body: selection, signal }),
    enabled: isAsked,
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
}

/** Sends a push again to the selected recipients. */
export function useRedrive({ appId, pushId }: OfPush, onSent: (objectId: string) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: RedriveSelection) =>
      call<{ objectId: string }>(appPath(appId, 'notifications', pushId, 'redrive'), {
        method: 'POST',
        body,
      }),
    onSuccess: ({ objectId }) => {
      void client.invalidateQueries({ queryKey: ['push', appId, pushId] });
      onSent(objectId);
    },
  });
}

/** Messages of one call of the outbox; a dry run names so many at least where there are more. */
export function useMessageForecast(appId: string, isAsked: boolean) {
  const path = appPath(appId, 'outbox', 'redrive', 'explain');
  return useQuery({
    queryKey: ['message-redrive', appId],
    queryFn: ({ signal }) => call<MessageForecast>(path, { method: 'POST', body: {}, signal }),
    enabled: isAsked,
    staleTime: 0,
  });
}

/** Sends the failed messages of an app again, call by call. */
export function useMessageRedrive(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const body = cursor === undefined ? {} : { cursor };
        const path = appPath(appId, 'outbox', 'redrive');
        ({ next: cursor } = await call<{ next: string | null }>(path, { method: 'POST', body }));
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['outbox'] }),
  });
}

/** Refused calls of gateways, newest first. */
export function useFailedReceipts(appId: string) {
  const path = appPath(appId, 'failed-receipts') + queryOf({ limit: 20 });
  return useQuery({
    queryKey: ['failed-receipts', appId],
    queryFn: ({ signal }) => call<KeysetPage<FailedReceipt>>(path, { signal }),
  });
}

/** Processes refused calls again, call by call; returns the numbers. */
export function useReceiptRedrive(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const sum = { processed: 0, refused: 0 };
      const path = appPath(appId, 'failed-receipts', 'redrive');
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const body = cursor === undefined ? {} : { cursor };
        const page: RedrivenReceipts = await call(path, { method: 'POST', body });
        sum.processed += page.processed;
        sum.refused += page.refused;
        cursor = page.next;
      }
      return sum;
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['failed-receipts', appId] }),
  });
}
