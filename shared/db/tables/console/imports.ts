import { type ImportReport, importAction, importReport } from '../../../domain/admin/import-report.ts';
import type { Handle } from '../../pool.ts';
import { switchOn } from '../apps/apps.ts';
import { insertCommand, listAudit } from './audit.ts';

/** Writes an import into the audit of its app. The person at the command line has the database, so no token. */
export const recordImport = (db: Handle, appId: string, report: ImportReport): Promise<void> =>
  insertCommand(db, { command: 'import', appId, action: importAction, target: appId, after: report });

/**
 * Lets the clients of an app with imported users find users by strict queries, as they did at the
 * public service. Keeps what an owner has set, and writes a change into the audit.
 */
export async function allowStrictQueries(tx: Handle, appId: string): Promise<void> {
  if (!(await switchOn(tx, appId, 'allowStrictUserQuery'))) return;
  const after = { options: { allowStrictUserQuery: true } };
  await insertCommand(tx, { command: 'import', appId, action: 'app.update', target: appId, after });
}

/** Returns the newest import of an app, while the audit has it. */
export async function findLastImport(
  db: Handle,
  appId: string,
): Promise<(ImportReport & { at: Date }) | undefined> {
  const page = { before: null, limit: 1 };
  const [entry] = await listAudit(db, { app: appId, action: importAction }, page);
  const report = importReport.safeParse(entry?.after);
  return entry && report.success ? { ...report.data, at: entry.at } : undefined;
}
