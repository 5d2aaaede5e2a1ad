import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { asUnchecked } from '../../../client/client.ts';
import type { Meta } from '../../../client/operations.ts';
import { call } from './client.ts';

/**
 * Description of the service, which does not change while it runs: connectors, options, keys of a
 * message.
 */
export function useMeta() {
  return useQuery({
    queryKey: ['meta'],
    queryFn: ({ signal }) => call('getMeta', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Connector of the service with the JSON Schema of its credentials. */
export type DescribedConnector = Meta['connectors'][number];

const detailStaleMs = 60_000;

/** Parameters of the path of a profile. */
export interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

const keyOf = ({ appId, connector, name }: ProfileId) => [appId, connector, name];

export function useProfiles(appId: string) {
  return useQuery({
    queryKey: ['profiles', appId],
    queryFn: ({ signal }) => call('listProfiles', { path: { appId }, signal }),
  });
}

/** Members of a profile that are no secrets, and how it fares. For operators. */
export function useProfile(id: ProfileId, isEnabled: boolean) {
  return useQuery({
    queryKey: ['profile', ...keyOf(id)],
    queryFn: ({ signal }) => call('getProfile', { path: { ...id }, signal }),
    enabled: isEnabled,
    staleTime: detailStaleMs,
  });
}

/** The same of all profiles of an app. */
export function useProfileDetails(appId: string, isEnabled: boolean) {
  return useQuery({
    queryKey: ['profile', appId, 'all'],
    queryFn: async ({ signal }) => {
      const { results } = await call('listProfiles', {
        path: { appId },
        query: { view: 'details' },
        signal,
      });
      return { results: results.filter((one) => 'members' in one) };
    },
    enabled: isEnabled,
    staleTime: detailStaleMs,
  });
}

/** Asks the gateway whether it takes the credentials; sends nothing. */
export function useProfileCheck(id: ProfileId) {
  return useMutation({ mutationFn: () => call('checkProfile', { path: { ...id } }) });
}

/** Stores or deletes a profile, then loads what shows it again. */
export function useProfileChange(id: ProfileId) {
  const onSuccess = useForget(['profiles', 'profile', 'overview', 'breakers']);
  const put = useMutation({
    mutationFn: (credentials: object) =>
      call('putProfile', { path: { ...id }, body: asUnchecked(credentials) }),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: () => call('deleteProfile', { path: { ...id } }),
    onSuccess,
  });
  return { put, remove };
}

/** Returns a function that loads queries of these nouns again. */
function useForget(nouns: readonly string[]) {
  const client = useQueryClient();
  return () =>
    void client.invalidateQueries({
      predicate: ({ queryKey }) => nouns.includes(String(queryKey[0])),
    });
}

const rotationRefreshMs = 5000;

/** Last rotation of the credentials, again every few seconds while a canary goes on. */
export function useRotation(id: ProfileId) {
  return useQuery({
    queryKey: ['profile-rotation', ...keyOf(id)],
    queryFn: ({ signal }) => call('getProfileRotation', { path: { ...id }, signal }),
    refetchInterval: ({ state }) => (state.data?.state === 'canary' ? rotationRefreshMs : false),
  });
}

/** Stages, promotes or rolls back a candidate, then loads what shows the profile again. */
export function useRotationChange(id: ProfileId) {
  const onSuccess = useForget(['profiles', 'profile', 'profile-rotation']);
  const stage = useMutation({
    mutationFn: (credentials: object) =>
      call('stageProfile', { path: { ...id }, body: asUnchecked(credentials) }),
    onSuccess,
  });
  const act = useMutation({
    mutationFn: (verb: 'promote' | 'rollback') =>
      call(verb === 'promote' ? 'promoteProfile' : 'rollBackProfile', { path: { ...id } }),
    onSuccess,
  });
  return { stage, act };
}

/** Refused calls of gateways, newest first. */
export function useFailedReceipts(appId: string) {
  return useQuery({
    queryKey: ['failed-receipts', appId],
    queryFn: ({ signal }) =>
      call('listFailedReceipts', { path: { appId }, query: { limit: 20 }, signal }),
  });
}

/** Processes refused calls again, call by call; returns the numbers. */
export function useReceiptRedrive(appId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const sum = { processed: 0, refused: 0 };
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await readReceipts(appId, cursor);
        sum.processed += page.processed;
        sum.refused += page.refused;
        cursor = page.next;
      }
      return sum;
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['failed-receipts', appId] }),
  });
}

const readReceipts = (appId: string, cursor: string | undefined) =>
  call('redriveReceipts', { path: { appId }, body: { cursor } });
