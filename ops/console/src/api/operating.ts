import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { call } from './client.ts';
import { showState } from './queries.ts';

const refreshMs = 10_000;
/** Poll interval for data that a person watches. */
const watchedMs = 5000;
/** Poll interval while a rotation of the secret runs. */
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

/** Forces a breaker open or closed, or ends the forced state. Then reloads the list. */
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

/** Unfinished jobs of a queue, oldest first. */
export function useJobs(queue: string) {
  return useQuery({
    queryKey: ['jobs', queue],
    queryFn: ({ signal }) => call('listJobs', { path: { queue }, query: { limit: 50 }, signal }),
    refetchInterval: watchedMs,
  });
}

/** Running processes. The list is polled every 5 s. */
export function useProcesses() {
  return useQuery({
    queryKey: ['processes'],
    queryFn: ({ signal }) => call('listProcesses', { signal }),
    refetchInterval: watchedMs,
  });
}

/**
 * Checks of the service. They are expensive, so they run only when the page opens and on request.
 */
export function useDoctor(isProduction: boolean) {
  return useQuery({
    queryKey: ['doctor', isProduction],
    queryFn: ({ signal }) =>
      call('runDoctor', { query: isProduction ? { production: 'true' } : {}, signal }),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });
}

/** Freezes of the service and of the person's apps. */
export function useFreezes() {
  return useQuery({
    queryKey: ['freezes'],
    queryFn: ({ signal }) => call('listFreezes', { signal }),
    refetchInterval: refreshMs,
  });
}

/** Freezes an app or, for null, the whole service. Needs a reason. */
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

/** Ends the freeze of an app or, for null, of the whole service. */
export function useRelease(appId: string | null) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      appId === null ? call('releaseService') : call('releaseApp', { path: { appId } }),
    onSettled: () => client.invalidateQueries({ queryKey: ['freezes'] }),
  });
}

/** Keys of CARILLON_SECRET and the last rotation. Polled every second while a rotation runs. */
export function useSecret() {
  return useQuery({
    queryKey: ['secret'],
    queryFn: ({ signal }) => call('getSecretRotation', { signal }),
    refetchInterval: ({ state }) =>
      state.data?.rotation?.state === 'running' ? runningMs : refreshMs,
  });
}

/**
 * Counts all values by key. The replies of `useSecret` contain only the counts of the last
 * rotation.
 */
export function useSecretCount() {
  return useMutation({ mutationFn: () => call('getSecretRotation', { query: { count: '1' } }) });
}

/** Starts a rotation to the first key. */
export function useSecretRotation() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => call('rotateSecret'),
    onSuccess: (state) => showState(client, ['secret'], state),
  });
}
