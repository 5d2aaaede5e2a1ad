import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { asUnchecked, type CallInput, type Input } from '../../../client/client.ts';
import type { AuditEntry } from '../../../client/operations.ts';
import type { AuditFilters, UserFilters } from '../search.ts';
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

/** Call that lists a page of an app's users, newest first. */
export const usersPage = (appId: string, filters: UserFilters): CallInput<'listAppUsers'> => ({
  path: { appId },
  query: { limit: 50, ...filters },
});

export function useUsers(appId: string, filters: UserFilters) {
  return useQuery({
    queryKey: ['users', appId, filters],
    queryFn: ({ signal }) => call('listAppUsers', { ...usersPage(appId, filters), signal }),
    placeholderData: keepPreviousData,
  });
}

export function useUser(appId: string, id: string) {
  return useQuery({
    queryKey: ['user', appId, id],
    queryFn: ({ signal }) => call('getAppUser', { path: { appId, id }, signal }),
  });
}

/** Operator action on a user other than editing members. */
export type UserAct = 'logout' | 'unlock' | 'send-reset' | 'verify-email' | 'verify-phone';

/** Runs an action on a user. Then reloads the data that shows the user. */
export function useUserChange(appId: string, id: string) {
  const client = useQueryClient();
  const path = { appId, id };
  const acts: Record<UserAct, () => Promise<unknown>> = {
    logout: () => call('logoutUser', { path }),
    unlock: () => call('unlockUser', { path }),
    'send-reset': () => call('sendUserReset', { path }),
    'verify-email': () => call('verifyUser', { path, body: { contact: 'email' } }),
    'verify-phone': () => call('verifyUser', { path, body: { contact: 'mobilePhoneNumber' } }),
  };
  const onSuccess = () => {
    void client.invalidateQueries({ queryKey: ['users'] });
    void client.invalidateQueries({ queryKey: ['user', appId, id] });
  };
  const act = useMutation({ mutationFn: (name: UserAct) => acts[name](), onSuccess });
  const update = useMutation({
    mutationFn: (members: object) => call('updateAppUser', { path, body: asUnchecked(members) }),
    onSuccess,
  });
  const remove = useMutation({ mutationFn: () => call('deleteAppUser', { path }), onSuccess });
  const erase = useMutation({
    mutationFn: () => call('deleteAppUser', { path, query: { everything: 'true' } }),
    onSuccess,
  });
  return { act, update, remove, erase };
}

/** Reads everything that is stored of a person, as text of a JSON file. */
export const exportPerson = async (appId: string, id: string): Promise<string> =>
  JSON.stringify(await call('exportAppUser', { path: { appId, id } }), null, 2);
