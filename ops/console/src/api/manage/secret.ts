import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { SecretState } from '../../../../../api/replies/admin/types.ts';
import { call } from '../client.ts';

const path = '/secret/rotation';
const runningMs = 1000;
const refreshMs = 10_000;

/** Keys of CARILLON_SECRET with the last rotation; asks each second while it runs. */
export function useSecret() {
  return useQuery({
    queryKey: ['secret'],
    queryFn: ({ signal }) => call<SecretState>(path, { signal }),
    refetchInterval: ({ state }) => (state.data?.rotation?.state === 'running' ? runningMs : refreshMs),
  });
}

/** Counts all values by key now. The replies of `useSecret` have the counts of the last rotation. */
export function useSecretCount() {
  return useMutation({ mutationFn: () => call<SecretState>(`${path}?count=1`) });
}

/** Requests a rotation to the first key. */
export function useSecretRotation() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call<SecretState>(path, { method: 'POST' }),
    onSuccess: (state) => client.setQueryData(['secret'], state),
  });
}
