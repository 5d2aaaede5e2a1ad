import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Database } from '../../../shared/db/pool.ts';
import type { EmbeddedPostgres } from '../../local/postgres/server.ts';

const run = promisify(execFile);

/** Server to copy: its files and a connection to it. */
interface Source {
  dataDir: string;
  server: EmbeddedPostgres;
  db: Database;
}

/**
 * Writes the files of a streaming standby of a running server into the new folder `toDir`: copies the server's files in backup
 * mode, since the embedded PostgreSQL has no pg_basebackup, and sets where it streams from.
 */
export async function cloneServer({ dataDir, server, db }: Source, toDir: string): Promise<void> {
  const label = await db.withConnection(async (connection) => {
    await connection.query("SELECT pg_backup_start('standby', true)");
    await run('cp', ['-a', dataDir, toDir]);
    const { rows } = await connection.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(false)',
    );
    return rows[0]?.labelfile ?? '';
  });
  const source = `primary_conninfo = 'host=${server.socketDir} port=5432 user=carillon'`;
  // A shell writes the files, so that the owner of the folder, which runs the server, also owns them.
  const script = [
    'set -e; cd "$1"; rm -f postmaster.pid',
    'printf "%s" "$2" > backup_label; printf "%s\\n" "$3" >> postgresql.auto.conf; touch standby.signal',
    'chown --reference=PG_VERSION backup_label postgresql.auto.conf standby.signal',
  ].join('\n');
  await run('sh', ['-c', script, 'sh', toDir, label, source]);
}
