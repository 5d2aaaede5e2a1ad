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

/** Writes the row of a process by the clock of the database, and deletes the rows of processes that have ended. */
export async function renewProcess(
  db: Handle,
  process: Omit<SeenProcess, 'startedAt' | 'seenAt'>,
  goneAfterMs: number,
): Promise<void> {
  const { id, kind, host, pid, version, threads, connections } = process;
  await db.query(
    `WITH gone AS (
       DELETE FROM process_seen WHERE seen_at < now() - $8 * interval '1 millisecond' AND id <> $1)
     INSERT INTO process_seen (id, kind, host, pid, version, threads, connections, started_at, seen_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, now(), now())
     ON CONFLICT (id) DO UPDATE
        SET threads = excluded.threads, connections = excluded.connections, seen_at = excluded.seen_at`,
    [id, kind, host, pid, version, threads, connections, goneAfterMs],
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
