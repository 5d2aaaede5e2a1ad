import { randomBytes } from 'node:crypto';
import { sleep } from '../../../shared/clock.ts';
import type { Bench } from '../../bench/harness/bench-service.ts';
import { type BenchApp, masterHeaders } from '../../bench/harness/client.ts';

const pauseMs = 200;
const callTimeoutMs = 15_000;

/** Outage from the perspective of API callers. */
export interface Outage {
  /** Time from the first to the last refused call. */
  seconds: number;
  /**
   * Number of calls by result. A result is the status and whether `Retry-After` is present, or a
   * connection error.
   */
  statuses: ReadonlyMap<string, number>;
  /** Ids of the installations whose save was accepted. */
  saved: readonly string[];
}

/** Calls that are repeated until `stop`. */
export interface RepeatedCalls {
  firstRefused: Promise<void>;
  /** Waits for one more successful call, then stops. */
  stop(): Promise<Outage>;
}

/** Alternately saves and reads an installation until stopped. */
export function startCalls(bench: Bench, app: BenchApp): RepeatedCalls {
  const statuses = new Map<string, number>();
  const saved: string[] = [];
  const controller = new AbortController();
  let [firstRefusedMs, lastRefusedMs]: (number | undefined)[] = [];
  let isAccepted = false;
  let onRefused: () => void = () => undefined;
  const firstRefused = new Promise<void>((resolve) => {
    onRefused = resolve;
  });
  const record = (answer: string) => {
    statuses.set(answer, (statuses.get(answer) ?? 0) + 1);
    isAccepted = answer.startsWith('20');
    if (isAccepted) return;
    lastRefusedMs = performance.now();
    firstRefusedMs ??= lastRefusedMs;
    onRefused();
  };
  const running = (async () => {
    for (let i = 0; !(controller.signal.aborted && isAccepted); i += 1) {
      const installationId = i % 2 === 0 ? undefined : `failover-${randomBytes(6).toString('hex')}`;
      record(await callOnce(bench, app, installationId));
      if (isAccepted && installationId) saved.push(installationId);
      await sleep(pauseMs, controller.signal);
    }
  })();
  return {
    firstRefused,
    async stop() {
      controller.abort();
      await running;
      const seconds = Math.round(((lastRefusedMs ?? 0) - (firstRefusedMs ?? 0)) / 100) / 10;
      return { seconds, statuses, saved };
    },
  };
}

/**
 * Saves the installation with the given id. Without an id, reads an installation. Returns the
 * result as a key of `Outage.statuses`.
 */
async function callOnce(
  bench: Bench,
  app: BenchApp,
  installationId: string | undefined,
): Promise<string> {
  const headers = masterHeaders(app);
  const signal = AbortSignal.timeout(callTimeoutMs);
  const body = JSON.stringify({ deviceType: 'android', installationId });
  const init = installationId === undefined ? { headers } : { method: 'POST', headers, body };
  try {
    const query = installationId === undefined ? '?limit=1' : '';
    const reply = await fetch(`${bench.url}/1.1/installations${query}`, { ...init, signal });
    await reply.body?.cancel();
    return reply.headers.has('retry-after')
      ? `${reply.status} with Retry-After`
      : String(reply.status);
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}
