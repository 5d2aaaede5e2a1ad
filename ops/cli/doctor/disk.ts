import { statfs } from 'node:fs/promises';
import { type Finding, found } from '../../../api/services/operator/doctor/finding.ts';
import type { Database } from '../../../shared/db/pool.ts';

const name = 'disk';

/** Free room below which there is a finding: both the part and the bytes have to be small. */
const defaultLimits = { warnShare: 0.1, warnBytes: 5e9, failShare: 0.02, failBytes: 1e9 };

const inGigabytes = (bytes: number) => (bytes / 1e9).toFixed(1);

/**
 * Checks the room on the disk of the database, if it is on this machine and the role may know where; PostgreSQL itself
 * does not tell.
 */
export async function checkDisk(db: Database, limits: Partial<typeof defaultLimits> = {}): Promise<Finding> {
  const { warnShare, warnBytes, failShare, failBytes } = { ...defaultLimits, ...limits };
  const { rows } = await db.query<{ size: number; dir: string | null }>(
    `SELECT pg_database_size(current_database())::float8 AS size,
            (SELECT setting FROM pg_settings WHERE name = 'data_directory'
              AND (inet_client_addr() IS NULL OR inet_client_addr() <<= ANY ('{127.0.0.0/8,::1/128}'::inet[]))) AS dir`,
  );
  const { size = 0, dir = null } = rows[0] ?? {};
  const used = inGigabytes(size);
  const room = dir === null ? undefined : await statfs(dir).catch(() => undefined);
  if (!room) return found({ name, status: 'ok', code: 'diskUnseen', params: { size: used } });
  const [free, total] = [room.bavail * room.bsize, room.blocks * room.bsize];
  const params = { size: used, free: inGigabytes(free), total: inGigabytes(total) };
  if (free < total * failShare && free < failBytes)
    return found({ name, status: 'fail', code: 'diskScarce', params });
  return free < total * warnShare && free < warnBytes
    ? found({ name, status: 'warn', code: 'diskScarce', params })
    : found({ name, status: 'ok', code: 'diskFine', params });
}
