import type { DeliverResult } from '../sending/task.ts';

/** Facts of a sent batch that tell about the health of its gateway. */
export type GatewayHealth = Pick<DeliverResult, 'health' | 'trouble'>;

/** Permission to send one batch to its gateway. The holder releases it exactly once. */
export interface GatewayPermit {
  kind: 'permit';
  /** Recipients of a batch that a probe may send to; undefined: all of them. */
  probeSize?: number;
  /** Memory by which the batch is watched and stopped (`sending/shared-memory.ts`); absent: it is not watched. */
  progressMemory?: SharedArrayBuffer;
  /**
   * Gives the permit back with the health that the batch showed; without one, sending failed for a reason of ours.
   * Resolves when the breaker has its new state, to whether the tries of this batch count.
   */
  release(health: GatewayHealth | undefined): Promise<boolean>;
}

/** Answer to a batch that asks for a permit. */
export type PermitAnswer = GatewayPermit | { kind: 'wait'; afterMs: number };

/** Permit for our own device channel, which has no gateway and no breaker. */
export const unwatchedPermit: GatewayPermit = { kind: 'permit', release: () => Promise.resolve(true) };
