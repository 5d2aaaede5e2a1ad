import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type {
  Meta,
  ProfileCheck,
  ProfileDetail,
  PushProfile,
  Results,
} from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../client.ts';

/** Description of the service, which does not change while it runs. */
export function useMeta() {
  return useQuery({
    queryKey: ['meta'],
    queryFn: ({ signal }) => call<Meta>('/meta', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Connector of the service with the JSON Schema of its credentials. */
export type DescribedConnector = Meta['connectors'][number];

const detailStaleMs = 60_000;

export interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

export const profilePath = ({ appId, connector, name }: ProfileId): string =>
  appPath(appId, 'profiles', connector, name);

export function useProfiles(appId: string) {
  return useQuery({
    queryKey: ['profiles', appId],
    queryFn: ({ signal }) => call<Results<PushProfile>>(appPath(appId, 'profiles'), { signal }),
  });
}

/** Members of a profile that are no secrets, and how it fares. For operators. */
export function useProfile(id: ProfileId, isEnabled: boolean) {
  return useQuery({
    queryKey: ['profile', id.appId, id.connector, id.name],
    queryFn: ({ signal }) => call<ProfileDetail>(profilePath(id), { signal }),
    enabled: isEnabled,
    staleTime: detailStaleMs,
  });
}

/** The same of all profiles of an app. */
export function useProfileDetails(appId: string, isEnabled: boolean) {
  return useQuery({
    queryKey: ['profile', appId, 'all'],
    queryFn: ({ signal }) =>
      call<Results<ProfileDetail>>(`${appPath(appId, 'profiles')}?view=details`, { signal }),
    enabled: isEnabled,
    staleTime: detailStaleMs,
  });
}

/** Asks the gateway whether it takes the credentials; sends nothing. */
export function useProfileCheck(id: ProfileId) {
  return useMutation({
    mutationFn: () => call<ProfileCheck>(`${profilePath(id)}/check`, { method: 'POST' }),
  });
}

/** Stores or deletes a profile, then loads what shows it again. */
export function useProfileChange(id: ProfileId) {
  const client = useQueryClient();
  const onSuccess = () => {
    const keys = ['profiles', 'profile', 'overview', 'breakers'];
    void client.invalidateQueries({ predicate: ({ queryKey }) => keys.includes(String(queryKey[0])) });
  };
  const put = useMutation({
    mutationFn: (credentials: object) => call(profilePath(id), { method: 'PUT', body: credentials }),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: () => call(profilePath(id), { method: 'DELETE' }),
    onSuccess,
  });
  return { put, remove };
}
