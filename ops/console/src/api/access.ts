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

/** Creates a token. Its secret is only in the mutation's result, so no query cache contains it. */
export function useCreateToken() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (draft: TokenDraft) => call('createConsoleToken', { body: draft }),
    gcTime: 0,
    onSuccess: () => client.invalidateQueries({ queryKey: ['tokens'] }),
  });
}

/** Deletes a token or ends a session. Deleting a token also ends its sessions. */
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
 * Creates a single-use login link for the holder of a token. Calls with the token itself, because a
 * session may not create login links.
 */
export function useLoginLink() {
  return useMutation({
    mutationFn: (token: string) => callWithToken(token)('createLoginLink'),
    gcTime: 0,
  });
}

/** Call that lists a page of the audit log, newest first. */
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

/** Reads all audit entries that match the filters, up to 10,000, newest first. */
export const readAudit = (filters: AuditFilters): Promise<AuditEntry[]> =>
  readPages((cursor) => call('listAudit', auditPage({ ...filters, cursor }, exportPage)));
