import { readFile } from 'node:fs/promises';
import type { Handle } from '../../../shared/db/pool.ts';
import { isSharded } from '../../../shared/db/sharding.ts';
import type { Bench } from './bench-service.ts';
import type { BenchApp } from './client.ts';

/** Clock ticks per second in /proc, a constant of Linux. */
const ticksPerSecond = 100;

/** Resource usage of a process so far. */
export interface ProcessUse {
  /** User and system CPU time of all threads of the process. */
  cpuSeconds: number;
  /** Peak resident memory (VmHWM). */
  peakMegabytes: number;
  /** Current resident memory (VmRSS). */
  residentMegabytes: number;
}

/**
 * Returns the fields of /proc/<pid>/stat that follow the process name, which may contain spaces.
 * The first returned field is field 3 (proc(5)).
 */
async function statFields(pid: number | undefined): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/**
 * Returns the sum of utime and stime (fields 14 and 15). If `withEnded` is true, adds the times of
 * ended children.
 */
function cpuSecondsOf(fields: string[], withEnded = false): number {
  const ticks = fields
    .slice(11, withEnded ? 15 : 13)
    .reduce((sum, field) => sum + Number(field), 0);
  return ticks / ticksPerSecond;
}

/**
 * Returns the CPU time in seconds that each PostgreSQL server used so far: first the server of
 * `db`, then the workers of a sharded database. Connections of the program `without` are not
 * counted. The value is NaN for a server on another machine, or if the system has no /proc.
 */
export async function databaseCpuSeconds(db: Handle, without = ''): Promise<number[]> {
  const { rows } = await db.query<Backends>(
    `SELECT pg_backend_pid() AS pid, ARRAY(SELECT pid FROM pg_stat_activity
      WHERE application_name = $1) AS without`,
    [without],
  );
  const workers = (await isSharded(db)) ? await workerBackends(db, rows[0]?.without ?? []) : [];
  return Promise.all([...rows, ...workers].map(serverCpuSeconds));
}

/** One process of a server, and the backends that are not counted. */
interface Backends {
  pid: number;
  without: number[];
}

/**
 * Returns a permanent process of each worker. `without` of the result are the worker's backends
 * that serve the backends `without` of the coordinator. Needs a superuser.
 */
async function workerBackends(db: Handle, without: readonly number[]): Promise<Backends[]> {
  const { rows } = await db.query<Backends>(
    `SELECT (result::jsonb ->> 'pid')::int AS pid,
            ARRAY(SELECT jsonb_array_elements_text(result::jsonb -> 'without')::int) AS without
       FROM run_command_on_workers(format(
         'SELECT jsonb_build_object(''pid'', max(pid) FILTER (WHERE backend_type = ''checkpointer''), ''without'',
                   coalesce(jsonb_agg(pid) FILTER (WHERE application_name = ANY (%L)), ''[]''))
                   FROM pg_stat_activity',
         ARRAY(SELECT 'citus_internal gpid=' || citus_backend_gpid() - pg_backend_pid() + pid
                 FROM unnest($1::int[]) AS pid)))
      ORDER BY nodename, nodeport`,
    [without],
  );
  return rows;
}

/** Returns names of the servers of `databaseCpuSeconds`. Empty if there is only one server. */
export const serverNames = (servers: readonly number[]): string[] =>
  servers.length === 1 ? [] : servers.map((_, i) => (i === 0 ? 'the coordinator' : `worker ${i}`));

/** Returns the sum of `databaseCpuSeconds`. */
export const allDatabaseCpuSeconds = async (db: Handle): Promise<number> =>
  (await databaseCpuSeconds(db)).reduce((sum, seconds) => sum + seconds, 0);

/** Returns the CPU time of all processes of the server that the process belongs to. */
async function serverCpuSeconds({ pid, without }: Backends): Promise<number> {
  try {
    const postmaster = Number((await statFields(pid))[1]);
    const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8');
    const own = cpuSecondsOf(await statFields(postmaster), true);
    const ofChildren = await Promise.all(
      children
        .trim()
        .split(' ')
        .map(Number)
        .filter((child) => !without.includes(child))
        .map((child) =>
          statFields(child).then(
            (fields) => cpuSecondsOf(fields),
            () => 0,
          ),
        ),
    );
    return ofChildren.reduce((sum, seconds) => sum + seconds, own);
  } catch {
    return Number.NaN;
  }
}

/**
 * Reads the resource usage of a process from /proc. Returns undefined if the system has no /proc.
 */
export async function processUse(pid: number | undefined): Promise<ProcessUse | undefined> {
  try {
    const [fields, status] = await Promise.all([
      statFields(pid),
      readFile(`/proc/${pid}/status`, 'utf8'),
    ]);
    const megabytes = (line: RegExp) => (Number(line.exec(status)?.[1]) * 1024) / 1e6;
    return {
      cpuSeconds: cpuSecondsOf(fields),
      peakMegabytes: megabytes(/^VmHWM:\s+(\d+) kB$/m),
      residentMegabytes: megabytes(/^VmRSS:\s+(\d+) kB$/m),
    };
  } catch {
    return undefined;
  }
}

/** Simulated tabs of the console that watch a push. */
interface Watchers {
  /** Closes the streams. Returns the average number of events of each stream. */
  stop(): Promise<number>;
}

/**
 * Opens `count` streams of live updates of a push, like tabs of the console. Throws if the api
 * refuses a stream.
 */
export async function watchPush(
  { url, adminToken }: Bench,
  { appId }: BenchApp,
  { objectId, count }: { objectId: string; count: number },
): Promise<Watchers> {
  const end = new AbortController();
  const streams = Array.from({ length: count }, async () => {
    const response = await fetch(`${url}/console/api/events?topics=push:${appId}/${objectId}`, {
      headers: { Authorization: `Bearer ${adminToken}` },
      signal: end.signal,
    });
    if (response.status !== 200 || !response.body)
      throw new Error(`a stream is ${response.status}`);
    return response.body;
  });
  const eventCounts = (await Promise.all(streams)).map(countEvents);
  return {
    async stop() {
      end.abort();
      const events = await Promise.all(eventCounts);
      return count === 0 ? 0 : events.reduce((sum, n) => sum + n, 0) / count;
    },
  };
}

/** Counts the events of a stream until it ends. */
async function countEvents(body: ReadableStream<Uint8Array>): Promise<number> {
  let events = 0;
  try {
    for await (const chunk of body)
      events += Buffer.from(chunk).toString('latin1').split('\nevent: ').length - 1;
  } catch {
    // The stream was aborted by `stop`.
  }
  return events;
}
