import { sleep } from '../../../shared/clock.ts';
import type { Stage } from './stage.ts';

/** Fault with the alerts that it must fire. */
export interface Scene {
  alerts: readonly string[];
  /** Labels by which the fault is known, of the alerts that have them. */
  labels?: Readonly<Record<string, string>>;
  /** Whether it disturbs no other fault, and so is made beside them. */
  isAside?: boolean;
  /** Makes the fault and keeps it until the signal aborts, then takes it back. */
  run(stage: Stage, signal: AbortSignal): Promise<void>;
}

/** Resolves when the signal aborts. */
export const ended = (signal: AbortSignal): Promise<void> => sleep(2 ** 30, signal);

/** Repeats `work`, with a pause after each time, until the signal aborts. */
export async function repeat(
  signal: AbortSignal,
  pauseMs: number,
  work: () => Promise<unknown>,
): Promise<void> {
  while (!signal.aborted) {
    await work();
    await sleep(pauseMs, signal);
  }
}
