import { z } from 'zod';
import type { Handle } from '../../pool.ts';

/** Kinds of processes of a service. */
export const processKinds = ['api', 'dispatcher'] as const;

/** Running process, as it registered itself. */
export interface SeenProcess {
  id: string;
  kind: (typeof processKinds)[number];
  host: string;
  pid: number;
  version: string;
  /** Threads that send; 1 for an api process. */
  threads: number;
  /** Connections of clients and devices, or of a dispatcher to gateways. */
  connections: number;
  startedAt: Date;
  seenAt: Date;
}

const processReport = z.object({
  /** Clock of the process when it wrote the row, in epoch milliseconds. */
  nowMs: z.number(),
  /** Files that it may open; null where the system does not say it. */
  maxFiles: z.number().nullable(),
  /** Seconds since the last success of each background duty. */
  duties: z.record(z.string(), z.number()),
  /** Ids of its keys of CARILLON_SECRET, the first key first; absent in older versions. */
  secretKeys: z.array(z.string()).optional(),
});

/** What a process says about itself for `carillon doctor`. */
export type ProcessReport = z.infer<typeof processReport>;

/** Writes the row of a process by the clock of the database, and deletes the rows of processes that have ended. */
export async function renewProcess(
  db: Handle,
  process: Omit<SeenProcess, 'startedAt' | 'seenAt'> & { report?: ProcessReport },
  goneAfterMs: number,
): Promise<void> {
  const { id, kind, host, pid, version, threads, connections, report } = process;
  await db.query(
    `WITH gone AS (
       DELETE FROM process_seen WHERE seen_at < now() - $8 * interval '1 millisecond' AND id <> $1)
     INSERT INTO process_seen (id, kind, host, pid, version, threads, connections, facts, started_at, seen_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $9, now(), now())
     ON CONFLICT (id) DO UPDATE
        SET threads = excluded.threads, connections = excluded.connections, facts = excluded.facts,
            seen_at = excluded.seen_at`,
    [id, kind, host, pid, version, threads, connections, goneAfterMs, report ? JSON.stringify(report) : null],
  );
}

/** Deletes the row of a process that stops. */
export async function forgetProcess(db: Handle, id: string): Promise<void> {
  await db.query('DELETE FROM process_seen WHERE id = $1', [id]);
}

/** Processes that a list names. */
const maxListed = 1000;

/** Lists the processes that renewed their rows lately, by kind and host. */
export async function listProcesses(db: Handle, goneAfterMs: number): Promise<SeenProcess[]> {
  const { rows } = await db.query<SeenProcess>(
    `SELECT id, kind, host, pid, version, threads, connections, started_at AS "startedAt", seen_at AS "seenAt"
       FROM process_seen WHERE seen_at >= now() - $1 * interval '1 millisecond'
      ORDER BY kind, host, started_at, id LIMIT ${maxListed}`,
    [goneAfterMs],
  );
  return rows;
}

/** Report of a running process, with its clock and the time since it was written. */
export interface ReportedProcess extends Pick<SeenProcess, 'id' | 'kind' | 'host' | 'pid' | 'connections'> {
  report: ProcessReport;
  /** By how much its clock is ahead of the clock of the database, in milliseconds. */
  clockAheadMs: number;
  ageSeconds: number;
}

/** Lists the reports of the running processes; processes of older versions write none. */
export async function listReports(db: Handle, goneAfterMs: number): Promise<ReportedProcess[]> {
  const { rows } = await db.query<Omit<ReportedProcess, 'report'> & { facts: unknown }>(
    `SELECT id, kind, host, pid, connections, facts, extract(epoch FROM now() - seen_at)::float8 AS "ageSeconds",
            (facts ->> 'nowMs')::float8 - extract(epoch FROM seen_at)::float8 * 1000 AS "clockAheadMs"
       FROM process_seen WHERE seen_at >= now() - $1 * interval '1 millisecond' AND facts IS NOT NULL
      ORDER BY kind, host, started_at, id LIMIT ${maxListed}`,
    [goneAfterMs],
  );
  return rows.flatMap(({ facts, ...row }) => {
    const report = processReport.safeParse(facts);
    return report.success ? [{ ...row, report: report.data }] : [];
  });
}
