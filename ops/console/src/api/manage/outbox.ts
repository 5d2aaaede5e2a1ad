import { useQuery } from '@tanstack/react-query';
import type { OutboxMessage, Results } from '../../../../../api/replies/admin/types.ts';
import type { OutboxFilters } from '../../search.ts';
import { appPath, call, queryOf } from '../client.ts';

/** Path of the mails and SMS of an app, newest first. */
export const outboxPath = (appId: string, { kind, to }: OutboxFilters): string =>
  appPath(appId, 'outbox') + queryOf({ kind, to });

export function useOutbox(appId: string, filters: OutboxFilters, isEnabled: boolean) {
  const path = outboxPath(appId, filters);
  return useQuery({
    queryKey: ['outbox', path],
    queryFn: ({ signal }) => call<Results<OutboxMessage>>(path, { signal }),
    enabled: isEnabled,
  });
}
