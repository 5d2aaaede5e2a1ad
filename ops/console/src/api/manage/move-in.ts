import { useQuery } from '@tanstack/react-query';
import type { MoveInState } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../client.ts';

export const moveInPath = (appId: string): string => appPath(appId, 'move-in');

/** How often the page asks, while it is shown: devices come in the hours after the switch. */
const refetchMs = 30_000;

/** How far the move of an app into this service is. */
export function useMoveIn(appId: string) {
  return useQuery({
    queryKey: ['move-in', appId],
    queryFn: ({ signal }) => call<MoveInState>(moveInPath(appId), { signal }),
    refetchInterval: refetchMs,
  });
}
