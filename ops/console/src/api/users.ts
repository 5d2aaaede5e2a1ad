import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { asUnchecked, type CallInput } from '../../../client/client.ts';
import type { UserFilters } from '../search.ts';
import { call } from './client.ts';

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
  return { act, update, remove };
}
