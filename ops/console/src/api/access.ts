import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type {
  AuditEntry,
  ConsoleSession,
  ConsoleToken,
  CreatedConsoleToken,
  KeysetPage,
  LoginLink,
} from '../../../../api/replies/admin/types.ts';
import type { AuditFilters } from '../search.ts';
import { ApiError, call, pathPart, queryOf } from './client.ts';
import { exportPage, readPages } from './manage/export.ts';
import type { Role } from './session.tsx';

export function useTokens(cursor: string | undefined) {
  return usePage<ConsoleToken>('tokens', `/tokens${queryOf({ limit: 50, cursor })}`);
}

export function useSessions(cursor: string | undefined) {
  return usePage<ConsoleSession>('sessions', `/sessions${queryOf({ limit: 50, cursor })}`);
}

/** Path of a page of the audit. */
export const auditPath = (filters: AuditFilters, limit = 50): string =>
  `/audit${queryOf({ limit, ...filters })}`;

export function useAudit(filters: AuditFilters) {
  return usePage<AuditEntry>('audit', auditPath(filters));
}

function usePage<T>(noun: string, path: string) {
  return useQuery({
    queryKey: [noun, path],
    queryFn: ({ signal }) => call<KeysetPage<T>>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}

/** Members of a new token. */
export interface TokenDraft {
  name: string;
  role: Role;
  /** Ids of apps; null for all. */
  apps: string[] | null;
  expiresAt: string | null;
}

/** Creates a token. Its secret is in this result only, so that no cache keeps it. */
export function useCreateToken() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (draft: TokenDraft) => call<CreatedConsoleToken>('/tokens', { method: 'POST', body: draft }),
    gcTime: 0,
    onSuccess: () => client.invalidateQueries({ queryKey: ['tokens'] }),
  });
}

/** Deletes a token, or ends a session. Deleting a token ends its sessions. */
export function useRemove(noun: 'tokens' | 'sessions') {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => call(`/${noun}/${pathPart(id)}`, { method: 'DELETE' }),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ['tokens'] });
      void client.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
}

/** Creates a link that logs in once as the holder of a token. A session cannot create one, so the token itself calls. */
export function useLoginLink() {
  return useMutation({
    mutationFn: async (token: string) => {
      const response = await fetch('/console/api/login-links', {
        method: 'POST',
        credentials: 'omit',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: '{}',
      });
      if (!response.ok)
        throw new ApiError('', { status: response.status, code: response.status, requestId: null });
      return (await response.json()) as LoginLink;
    },
    gcTime: 0,
  });
}

/** Reads all entries of the audit that the filters match, up to 10,000, newest first. */
export const readAudit = (filters: AuditFilters): Promise<AuditEntry[]> =>
  readPages((cursor) => auditPath({ ...filters, cursor }, exportPage));
