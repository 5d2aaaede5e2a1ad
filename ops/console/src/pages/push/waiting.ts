import type { PushProgress } from '../../../../../api/replies/admin/types.ts';

/** Messages of the own channel that are sent and that no device has acknowledged yet. */
export const waitingOf = ({ connectors, acked }: Pick<PushProgress, 'connectors' | 'acked'>): number =>
  Math.max(0, (connectors.channel?.sent ?? 0) - acked);
