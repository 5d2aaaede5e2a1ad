import { useQuery } from '@tanstack/react-query';
import type {
  DoctorFinding,
  Results,
  SeenProcess,
  WaitingJob,
} from '../../../../../api/replies/admin/types.ts';
import { call, pathPart, queryOf } from '../client.ts';
import { useMay, useOperator } from '../session.tsx';

const refreshMs = 5000;

/** Tells whether the person may see what concerns the whole service: an operator of all apps. */
export function useIsOfService(): boolean {
  const { apps } = useOperator();
  return useMay('operator') && apps === null;
}

/** Processes that run, renewed every 5 s. */
export function useProcesses() {
  return useQuery({
    queryKey: ['processes'],
    queryFn: ({ signal }) => call<Results<SeenProcess>>('/processes', { signal }),
    refetchInterval: refreshMs,
  });
}

/** Checks of the service. They read much, so they run when the page opens and on request only. */
export function useDoctor() {
  return useQuery({
    queryKey: ['doctor'],
    queryFn: ({ signal }) => call<Results<DoctorFinding>>('/doctor', { signal }),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
  });
}

/** Jobs of a queue that are not done, the oldest first. */
export function useJobs(queue: string) {
  return useQuery({
    queryKey: ['jobs', queue],
    queryFn: ({ signal }) =>
      call<Results<WaitingJob>>(`/queues/${pathPart(queue)}/jobs${queryOf({ limit: 50 })}`, {
        signal,
      }),
    refetchInterval: refreshMs,
  });
}
