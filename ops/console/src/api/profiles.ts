import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { asUnchecked } from '../../../client/client.ts';
import type { Meta } from '../../../client/operations.ts';
import { call } from './client.ts';

/**
 * Description of the service: connectors, options, and keys of a message. It does not change while
 * the service runs.
 */
export function useMeta() {
  return useQuery({
    queryKey: ['meta'],
    queryFn: ({ signal }) => call('getMeta', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Connector with the JSON Schema of its credentials. */
export type DescribedConnector = Meta['connectors'][number];

const detailStaleMs = 60_000;

/** Path parameters of a profile. */
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

/** Non-secret members and the state of a profile. For operators. */
export function useProfile(id: ProfileId, isEnabled: boolean) {
  return useQuery({
    queryKey: ['profile', ...keyOf(id)],
    queryFn: ({ signal }) => call('getProfile', { path: { ...id }, signal }),
    enabled: isEnabled,
    staleTime: detailStaleMs,
  });
}

/** Non-secret members and the states of all profiles of an app. */
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

/** Checks whether the gateway accepts the credentials. Sends no message. */
export function useProfileCheck(id: ProfileId) {
  return useMutation({ mutationFn: () => call('checkProfile', { path: { ...id } }) });
}

/** Stores or deletes a profile. Then reloads the data that shows it. */
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

/** Returns a function that invalidates all queries whose key starts with one of these nouns. */
function useForget(nouns: readonly string[]) {
  const client = useQueryClient();
  return () =>
    void client.invalidateQueries({
      predicate: ({ queryKey }) => nouns.includes(String(queryKey[0])),
    });
}

const rotationRefreshMs = 5000;

/** Last rotation of the credentials. Polled while a canary runs. */
export function useRotation(id: ProfileId) {
  return useQuery({
    queryKey: ['profile-rotation', ...keyOf(id)],
    queryFn: ({ signal }) => call('getProfileRotation', { path: { ...id }, signal }),
    refetchInterval: ({ state }) => (state.data?.state === 'canary' ? rotationRefreshMs : false),
  });
}

/** Stages, promotes or rolls back a candidate. Then reloads the data that shows the profile. */
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

/** Receipts from gateways that were refused, newest first. */
export function useFailedReceipts(appId: string) {
  return useQuery({
    queryKey: ['failed-receipts', appId],
    queryFn: ({ signal }) =>
      call('listFailedReceipts', { path: { appId }, query: { limit: 20 }, signal }),
  });
}

/** Processes refused receipts again. Repeats the call until none is left. Returns the counts. */
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
