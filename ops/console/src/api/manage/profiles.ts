import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type {
  Meta,
  ProfileCheck,
  ProfileDetail,
  ProfileRotation,
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

const rotationRefreshMs = 5000;

/** Last rotation of the credentials, again every few seconds while a canary goes on. */
export function useRotation(id: ProfileId) {
  return useQuery({
    queryKey: ['profile-rotation', id.appId, id.connector, id.name],
    queryFn: ({ signal }) => call<ProfileRotation>(`${profilePath(id)}/candidate`, { signal }),
    refetchInterval: ({ state }) => (state.data?.state === 'canary' ? rotationRefreshMs : false),
  });
}

/** Stages, promotes or rolls back a candidate, then loads what shows the profile again. */
export function useRotationChange(id: ProfileId) {
  const client = useQueryClient();
  const path = `${profilePath(id)}/candidate`;
  const onSuccess = () => {
    const keys = ['profiles', 'profile', 'profile-rotation'];
    void client.invalidateQueries({ predicate: ({ queryKey }) => keys.includes(String(queryKey[0])) });
  };
  const stage = useMutation({
    mutationFn: (credentials: object) => call<ProfileRotation>(path, { method: 'PUT', body: credentials }),
    onSuccess,
  });
  const act = useMutation({
    mutationFn: (verb: 'promote' | 'rollback') =>
      call<ProfileRotation>(`${path}/${verb}`, { method: 'POST' }),
    onSuccess,
  });
  return { stage, act };
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
