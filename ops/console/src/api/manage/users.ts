import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { KeysetPage, UserDetail } from '../../../../../api/replies/admin/types.ts';
import type { UserFilters } from '../../search.ts';
import { appPath, call, queryOf } from '../client.ts';

/** User of an app; further members come beside these. A reply has the id always. */
export type ShownUser = UserDetail['user'] & { objectId: string };

export type ShownUserDetail = UserDetail & { user: ShownUser };

/** Path of a page of users. */
export const usersPath = (appId: string, filters: UserFilters): string =>
  appPath(appId, 'users') + queryOf({ limit: 50, ...filters });

export function useUsers(appId: string, filters: UserFilters) {
  const path = usersPath(appId, filters);
  return useQuery({
    queryKey: ['users', path],
    queryFn: ({ signal }) => call<KeysetPage<ShownUser>>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}

export function useUser(appId: string, userId: string) {
  return useQuery({
    queryKey: ['user', appId, userId],
    queryFn: ({ signal }) => call<ShownUserDetail>(appPath(appId, 'users', userId), { signal }),
  });
}

/** What an operator may do to a user without writing members. */
export type UserAct = 'logout' | 'unlock' | 'send-reset' | 'verify-email' | 'verify-phone';

/** Acts on a user, then loads what shows it again. */
export function useUserChange(appId: string, userId: string) {
  const client = useQueryClient();
  const path = appPath(appId, 'users', userId);
  const onSuccess = () => {
    void client.invalidateQueries({ queryKey: ['users'] });
    void client.invalidateQueries({ queryKey: ['user', appId, userId] });
  };
  const act = useMutation({ mutationFn: (name: UserAct) => callAct(path, name), onSuccess });
  const update = useMutation({
    mutationFn: (body: object) => call(path, { method: 'PUT', body }),
    onSuccess,
  });
  const remove = useMutation({ mutationFn: () => call(path, { method: 'DELETE' }), onSuccess });
  return { act, update, remove };
}

function callAct(path: string, name: UserAct): Promise<unknown> {
  if (name === 'verify-email' || name === 'verify-phone') {
    const contact = name === 'verify-email' ? 'email' : 'mobilePhoneNumber';
    return call(`${path}/verify`, { method: 'POST', body: { contact } });
  }
  return call(`${path}/${name}`, { method: 'POST' });
}
