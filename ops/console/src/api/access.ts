import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { CallInput, Input } from '../../../client/client.ts';
import type { AuditEntry } from '../../../client/operations.ts';
import type { AuditFilters } from '../search.ts';
import { exportPage, readPages } from './apps.ts';
import { call, callWithToken } from './client.ts';

export function useTokens(cursor: string | undefined) {
  return useQuery({
    queryKey: ['tokens', cursor],
    queryFn: ({ signal }) => call('listConsoleTokens', { query: { limit: 50, cursor }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function useSessions(cursor: string | undefined) {
  return useQuery({
    queryKey: ['sessions', cursor],
    queryFn: ({ signal }) => call('listConsoleSessions', { query: { limit: 50, cursor }, signal }),
    placeholderData: keepPreviousData,
  });
}

/** Members of a new token. */
export type TokenDraft = Input<'createConsoleToken'>['body'];

/** Creates a token. Its secret is in this result only, so that no cache keeps it. */
export function useCreateToken() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (draft: TokenDraft) => call('createConsoleToken', { body: draft }),
    gcTime: 0,
    onSuccess: () => client.invalidateQueries({ queryKey: ['tokens'] }),
  });
}

/** Deletes a token, or ends a session. Deleting a token ends its sessions. */
export function useRemove(noun: 'tokens' | 'sessions') {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      call(noun === 'tokens' ? 'deleteConsoleToken' : 'deleteConsoleSession', { path: { id } }),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['tokens'] });
      void client.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
}

/**
 * Creates a link that logs in once as the holder of a token. A session cannot create one, so the
 * token itself calls.
 */
export function useLoginLink() {
  return useMutation({
    mutationFn: (token: string) => callWithToken(token)('createLoginLink'),
    gcTime: 0,
  });
}

/** Page of the audit, newest first. */
export const auditPage = (filters: AuditFilters, limit = 50): CallInput<'listAudit'> => ({
  query: { limit, ...filters },
});

export function useAudit(filters: AuditFilters) {
  return useQuery({
    queryKey: ['audit', filters],
    queryFn: ({ signal }) => call('listAudit', { ...auditPage(filters), signal }),
    placeholderData: keepPreviousData,
  });
}

/** Reads all entries of the audit that the filters match, up to 10,000, newest first. */
export const readAudit = (filters: AuditFilters): Promise<AuditEntry[]> =>
  readPages((cursor) => call('listAudit', auditPage({ ...filters, cursor }, exportPage)));
