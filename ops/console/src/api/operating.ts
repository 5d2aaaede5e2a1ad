import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { call } from './client.ts';

const refreshMs = 10_000;
/** What a person watches while the page is open. */
const watchedMs = 5000;
/** A rotation of the secret that runs. */
const runningMs = 1000;

export function useBreakers() {
  return useQuery({
    queryKey: ['breakers'],
    queryFn: ({ signal }) => call('listBreakers', { signal }),
    refetchInterval: refreshMs,
  });
}

const breakerOperations = {
  open: 'openBreaker',
  close: 'closeBreaker',
  release: 'releaseBreaker',
} as const;

export type BreakerAct = keyof typeof breakerOperations;

/** Forces a breaker open or closed, or ends that; then loads the list again. */
export function useBreakerAct(id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (act: BreakerAct) => call(breakerOperations[act], { path: { id } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['breakers'] }),
  });
}

export function useQueues() {
  return useQuery({
    queryKey: ['queues'],
    queryFn: ({ signal }) => call('listQueues', { signal }),
    refetchInterval: refreshMs,
  });
}

/** Jobs of a queue that are not done, the oldest first. */
export function useJobs(queue: string) {
  return useQuery({
    queryKey: ['jobs', queue],
    queryFn: ({ signal }) => call('listJobs', { path: { queue }, query: { limit: 50 }, signal }),
    refetchInterval: watchedMs,
  });
}

/** Processes that run, renewed every 5 s. */
export function useProcesses() {
  return useQuery({
    queryKey: ['processes'],
    queryFn: ({ signal }) => call('listProcesses', { signal }),
    refetchInterval: watchedMs,
  });
}

/** Checks of the service. They read much, so they run when the page opens and on request only. */
export function useDoctor() {
  return useQuery({
    queryKey: ['doctor'],
    queryFn: ({ signal }) => call('runDoctor', { signal }),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });
}

/** Freeze of the service and those of the person's apps. */
export function useFreezes() {
  return useQuery({
    queryKey: ['freezes'],
    queryFn: ({ signal }) => call('listFreezes', { signal }),
    refetchInterval: refreshMs,
  });
}

/** Freezes an app, or the service (null), with a reason. */
export function useFreeze(appId: string | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) =>
      appId === null
        ? call('freezeService', { body: { reason } })
        : call('freezeApp', { path: { appId }, body: { reason } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['freezes'] }),
  });
}

/** Ends the freeze of an app, or of the service (null). */
export function useRelease(appId: string | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      appId === null ? call('releaseService') : call('releaseApp', { path: { appId } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['freezes'] }),
  });
}

/** Keys of CARILLON_SECRET with the last rotation; asks each second while it runs. */
export function useSecret() {
  return useQuery({
    queryKey: ['secret'],
    queryFn: ({ signal }) => call('getSecretRotation', { signal }),
    refetchInterval: ({ state }) =>
      state.data?.rotation?.state === 'running' ? runningMs : refreshMs,
  });
}

/**
 * Counts all values by key now. The replies of `useSecret` have the counts of the last rotation.
 */
export function useSecretCount() {
  return useMutation({ mutationFn: () => call('getSecretRotation', { query: { count: '1' } }) });
}

/** Requests a rotation to the first key. */
export function useSecretRotation() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call('rotateSecret'),
    onSuccess: (state) => client.setQueryData(['secret'], state),
  });
}
