import { sleep } from '../../../shared/clock.ts';
import type { Stage } from './stage.ts';

/** Fault and the alerts that it must fire. */
export interface Scene {
  alerts: readonly string[];
  /** Labels that identify the fault, for alerts that have these labels. */
  labels?: Readonly<Record<string, string>>;
  /** True if the fault disturbs no other fault. It then runs in parallel with the others. */
  isIndependent?: boolean;
  /** Causes the fault and keeps it until the signal aborts. Then undoes it. */
  run(stage: Stage, signal: AbortSignal): Promise<void>;
}

/** Resolves when the signal aborts. */
export const ended = (signal: AbortSignal): Promise<void> => sleep(2 ** 30, signal);

/** Repeats `work` with pauses until the signal aborts. */
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
