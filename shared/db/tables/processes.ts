import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import type { Clock } from '../../clock.ts';
import { type Config, packageVersion } from '../../config/config.ts';
import type { Vault } from '../../crypto.ts';
import type { Metrics } from '../../metrics.ts';
import type { Logger } from '../../process/logging.ts';
import type { Handle } from '../pool.ts';
import { membersOf } from '../prepared.ts';
import { query } from '../query.ts';

/** A running process, as it registered itself. */
export interface SeenProcess {
  id: string;
  kind: 'api' | 'dispatcher';
  host: string;
  pid: number;
  version: string;
  /** Number of sending threads; 1 for an api process. */
  threads: number;
  /** Connections of clients and devices. For a dispatcher: connections to gateways. */
  connections: number;
  startedAt: Date;
  seenAt: Date;
}

const processReport = z.object({
  /** Clock of the process when it wrote the row, in epoch ms. */
  nowMs: z.number(),
  /** Maximum open files; null if the operating system does not report it. */
  maxFiles: z.number().nullable(),
  /** Seconds since the last success of each background job. */
  duties: z.record(z.string(), z.number()),
  /** Ids of its keys of CARILLON_SECRET, first key first. Absent in older versions. */
  secretKeys: z.array(z.string()).optional(),
  /** Settings that `carillon doctor --production` checks. Absent in older versions. */
  setup: z
    .object({
      publicUrl: z.string(),
      hasTrustedProxies: z.boolean(),
      hasMail: z.boolean(),
      hasSms: z.boolean(),
      hasShortToken: z.boolean(),
      /** Seconds since the metrics were last read; null if they never were. */
      scrapedSecondsAgo: z.number().nullable(),
    })
    .optional(),
});

/** What a process reports about itself for `carillon doctor`. */
export type ProcessReport = z.infer<typeof processReport>;

/** Interval at which a process renews its row, in ms. */
const renewMs = 5000;
/** A process whose row is older than this time has ended. It missed several renewals. */
const goneBefore = `now() - interval '20 s'`;

/**
 * Writes the row of a process with the database's time, and deletes the rows of processes that have
 * ended.
 */
const renewText = `
  WITH gone AS (DELETE FROM process_seen WHERE seen_at < ${goneBefore} AND id <> $1)
  INSERT INTO process_seen (id, kind, host, pid, version, threads, connections, facts, started_at,
    seen_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now(), now())
  ON CONFLICT (id) DO UPDATE
     SET threads = excluded.threads, connections = excluded.connections, facts = excluded.facts,
         seen_at = excluded.seen_at`;

const maxListed = 1000;

/** Lists the processes that renewed their rows recently, by kind and host. */
export const listProcesses = (db: Handle) =>
  query(db).rows<SeenProcess>(
    `SELECT ${membersOf('p', 'id, kind, host, pid, version, threads, connections, started_at, seen_at')}
       FROM process_seen p WHERE seen_at >= ${goneBefore}
      ORDER BY kind, host, started_at, id LIMIT ${maxListed}`,
  );

/** Report of a running process, with its clock and the age of the report. */
export interface ReportedProcess
  extends Pick<SeenProcess, 'id' | 'kind' | 'host' | 'pid' | 'connections'> {
  report: ProcessReport;
  /** Milliseconds by which its clock is ahead of the database's clock. */
  clockAheadMs: number;
  ageSeconds: number;
}

/** Lists the reports of running processes. Processes of older versions write none. */
export async function listReports(db: Handle): Promise<ReportedProcess[]> {
  const rows = await query(db).rows<Omit<ReportedProcess, 'report'> & { facts: unknown }>(
    `SELECT id, kind, host, pid, connections, facts,
            extract(epoch FROM now() - seen_at)::float8 AS "ageSeconds",
            (facts ->> 'nowMs')::float8 - extract(epoch
            FROM seen_at)::float8 * 1000 AS "clockAheadMs"
       FROM process_seen WHERE seen_at >= ${goneBefore} AND facts IS NOT NULL
      ORDER BY kind, host, started_at, id LIMIT ${maxListed}`,
  );
  return rows.flatMap(({ facts, ...row }) => {
    const report = processReport.safeParse(facts);
    return report.success ? [{ ...row, report: report.data }] : [];
  });
}

/** Properties of a process that change. */
type ProcessFacts = Pick<SeenProcess, 'threads' | 'connections'> & { report?: ProcessReport };

type ReadFacts = () => ProcessFacts | Promise<ProcessFacts>;

/** Maintains the row of this process in the register (protocol/admin-api.md#processes). */
export class ProcessRegister {
  readonly #db: Handle;
  readonly #log: Logger;
  readonly #facts: ReadFacts;
  readonly #process: Omit<SeenProcess, 'startedAt' | 'seenAt' | 'threads' | 'connections'>;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(
    db: Handle,
    { kind, log, facts }: { kind: SeenProcess['kind']; log: Logger; facts: ReadFacts },
  ) {
    this.#db = db;
    this.#log = log;
    this.#facts = facts;
    const { pid } = process;
    this.#process = { id: randomUUID(), kind, host: hostname(), pid, version: packageVersion() };
  }

  /** Writes the row, and renews it until `close`. Never rejects: the next renewal tries again. */
  start(): Promise<void> {
    this.#renewal = this.#renew();
    return this.#renewal;
  }

  /** Deletes the row, unless the database is unavailable. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#renewal;
    const text = 'DELETE FROM process_seen WHERE id = $1';
    await this.#db.query(text, [this.#process.id]).catch(() => undefined);
  }

  async #renew(): Promise<void> {
    try {
      const { id, kind, host, pid, version } = this.#process;
      const { threads, connections, report } = await this.#facts();
      const values = [id, kind, host, pid, version, threads, connections, report];
      await this.#db.query(renewText, values);
    } catch (error) {
      this.#log.debug({ err: error }, 'could not renew the row of this process');
    }
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#renewal = this.#renew();
    }, renewMs).unref();
  }
}

/** Minimum length of the operator's token. 16 random bytes in base64 have 22 characters. */
export const minTokenLength = 22;

/** Returns the report of this process for the register. */
export async function reportProcess({
  metrics,
  clock,
  vault,
  config,
}: {
  metrics: Metrics;
  clock: Clock;
  vault: Vault;
  config: Pick<Config, 'publicUrl' | 'trustedProxies' | 'smtpUrl' | 'sms' | 'adminToken'>;
}): Promise<ProcessReport> {
  const nowMs = clock.now();
  const maxFiles = (await metrics.registry.getSingleMetric('process_max_fds')?.get())?.values[0]
    ?.value;
  const { values } = await metrics.backgroundJobLastSuccess.get();
  const ages = values.map(({ labels, value }) => [String(labels.duty), nowMs / 1000 - value]);
  const { scrapedAtMs } = metrics.lastScrape;
  return {
    nowMs,
    maxFiles: maxFiles ?? null,
    duties: Object.fromEntries(ages),
    secretKeys: vault.keyIds,
    setup: {
      publicUrl: config.publicUrl,
      hasTrustedProxies: config.trustedProxies > 0,
      hasMail: config.smtpUrl !== undefined,
      hasSms: config.sms !== undefined,
      hasShortToken: config.adminToken.length < minTokenLength,
      scrapedSecondsAgo: scrapedAtMs === null ? null : Math.round((nowMs - scrapedAtMs) / 1000),
    },
  };
}

/** Traces of backups in the statistics of PostgreSQL. */
export const readArchiving = (db: Handle) =>
  query(db).one<{ archivedAt: Date | null; hasStandby: boolean }>(
    `SELECT last_archived_time AS "archivedAt",
            EXISTS (SELECT FROM pg_replication_slots WHERE slot_type = 'physical') AS "hasStandby"
       FROM pg_stat_archiver`,
  );
