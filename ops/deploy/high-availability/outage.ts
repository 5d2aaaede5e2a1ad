import { sleep } from '../../../shared/clock.ts';
import type { Bench } from '../../bench/harness/bench-service.ts';
import { type BenchApp, masterHeaders } from '../../bench/harness/client.ts';

const pauseMs = 200;
const patienceMs = 15_000;

/** What callers saw of an outage. */
export interface Outage {
  /** Time from the first refused call to the last one. */
  seconds: number;
  /** Calls by their answer: a status, with the presence of `Retry-After`, or an error of the connection. */
  statuses: ReadonlyMap<string, number>;
}

/** Calls that go on until they are stopped. */
export interface WatchedCalls {
  firstRefused: Promise<void>;
  /** Waits for a call that succeeds, and ends. */
  stop(): Promise<Outage>;
}

/** Saves an installation and reads one, again and again. */
export function watchCalls(bench: Bench, app: BenchApp): WatchedCalls {
  const statuses = new Map<string, number>();
  const controller = new AbortController();
  let [firstRefusedMs, lastRefusedMs]: (number | undefined)[] = [];
  let isAccepted = false;
  let onRefused: () => void = () => undefined;
  const firstRefused = new Promise<void>((resolve) => {
    onRefused = resolve;
  });
  const note = (answer: string) => {
    statuses.set(answer, (statuses.get(answer) ?? 0) + 1);
    isAccepted = answer.startsWith('20');
    if (isAccepted) return;
    lastRefusedMs = performance.now();
    firstRefusedMs ??= lastRefusedMs;
    onRefused();
  };
  const running = (async () => {
    for (let i = 0; !(controller.signal.aborted && isAccepted); i += 1) {
      note(await askOnce(bench, app, i));
      await sleep(pauseMs, controller.signal);
    }
  })();
  return {
    firstRefused,
    async stop() {
      controller.abort();
      await running;
      const seconds = Math.round(((lastRefusedMs ?? 0) - (firstRefusedMs ?? 0)) / 100) / 10;
      return { seconds, statuses };
    },
  };
}

async function askOnce(bench: Bench, app: BenchApp, place: number): Promise<string> {
  const headers = masterHeaders(app);
  const signal = AbortSignal.timeout(patienceMs);
  const saved = { deviceType: 'android', installationId: `failover-${place % 5}` };
  const init = place % 2 === 0 ? { headers } : { method: 'POST', headers, body: JSON.stringify(saved) };
  try {
    const reply = await fetch(`${bench.url}/1.1/installations${place % 2 === 0 ? '?limit=1' : ''}`, {
      ...init,
      signal,
    });
    await reply.body?.cancel();
    return reply.headers.has('retry-after') ? `${reply.status} with Retry-After` : String(reply.status);
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}
