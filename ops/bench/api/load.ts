import { setTimeout as sleep } from 'node:timers/promises';
import { parseJson } from '../../../shared/domain/json.ts';
import type { Figure } from '../harness/arguments.ts';
import type { Bench } from '../harness/bench-service.ts';
import type { BenchApp } from '../harness/client.ts';
import type { KeepAliveCall, KeepAliveClient } from '../harness/keep-alive-client.ts';
import { databaseCpuSeconds, processUse, serverNames } from '../harness/process-use.ts';

/** Calls of a phase before the measured ones: they open connections and compile code. */
export const warmUpMs = 1000;

/** App of the benchmark with a user who is logged in. */
export interface Tenant {
  app: BenchApp;
  sessionToken: string;
}

/** One phase: the clients make these calls, one after the other. */
export interface Phase {
  name: string;
  unit: string;
  /** Calls per second that the clients make together at most; absent: as many as they can. */
  callsPerSecond?: number;
  /** Returns call number `n` of a client. */
  call(client: number, n: number): KeepAliveCall;
}

/** Measured calls of a phase. */
interface Measured {
  seconds: number;
  tookMs: number[];
}

export const tenantOf = (tenants: Tenant[], client: number, n: number): Tenant => {
  const tenant = tenants[(client + n) % tenants.length];
  if (!tenant) throw new Error('the benchmark has no apps');
  return tenant;
};

export interface Load {
  bench: Bench;
  client: KeepAliveClient;
  clients: number;
  log: (line: string) => void;
}

/** Makes calls with all clients for a time. `next` numbers the next call of a client. */
export async function run(
  { client, clients }: Load,
  durationMs: number,
  phase: Phase,
  first: number,
): Promise<Measured & { next: number }> {
  const startedAtMs = performance.now();
  const tookMs: number[] = [];
  let next = first;
  let made = 0;
  const repeat = async (number: number) => {
    let n = first;
    for (; performance.now() - startedAtMs < durationMs; n += 1) {
      const dueMs = phase.callsPerSecond === undefined ? 0 : (made * 1000) / phase.callsPerSecond;
      made += 1;
      const waitMs = dueMs - (performance.now() - startedAtMs);
      if (waitMs > 0) await sleep(waitMs);
      const sentAtMs = performance.now();
      parseJson(await client.send(phase.call(number, n)));
      tookMs.push(performance.now() - sentAtMs);
    }
    next = Math.max(next, n);
  };
  await Promise.all(Array.from({ length: clients }, (_, number) => repeat(number)));
  // An even number: the first call of a phase with repeats is a new one.
  return { tookMs, next: next + (next % 2), seconds: (performance.now() - startedAtMs) / 1000 };
}

/** Processor time so far, in seconds. */
export interface Uses {
  api: number;
  /** Of all servers. */
  database: number;
  /** Of each server of the database. */
  servers: number[];
  dispatcher: number;
  /** This process, which sends the calls. */
  client: number;
}

export async function uses({ db, pids }: Bench): Promise<Uses> {
  const { api, dispatchers } = pids();
  const servers = await databaseCpuSeconds(db);
  const database = servers.reduce((sum, seconds) => sum + seconds, 0);
  const [ofApi, ...others] = await Promise.all([api, ...dispatchers].map(processUse));
  const dispatcher = others.reduce((sum, use) => sum + (use?.cpuSeconds ?? Number.NaN), 0);
  const { user, system } = process.cpuUsage();
  const client = (user + system) / 1e6;
  return { api: ofApi?.cpuSeconds ?? Number.NaN, database, servers, dispatcher, client };
}

export const delta = (before: Uses, after: Uses): Uses => ({
  api: after.api - before.api,
  database: after.database - before.database,
  servers: after.servers.map((seconds, i) => seconds - (before.servers[i] ?? Number.NaN)),
  dispatcher: after.dispatcher - before.dispatcher,
  client: after.client - before.client,
});

export const perThousand = (name: string, seconds: number, calls: number): Figure => ({
  name,
  value: (seconds * 1e6) / calls,
  unit: 'CPU ms per 1,000',
});

/** Returns the figures of the database: of all its servers, and of each where there are several. */
export const ofDatabase = (name: string, { database, servers }: Uses, calls: number): Figure[] => [
  perThousand(name, database, calls),
  ...serverNames(servers).map((server, i) =>
    perThousand(`${name} of ${server}`, servers[i] ?? Number.NaN, calls),
  ),
];
