import type { Handle } from '../../pool.ts';
import { listProcesses, listReports, type SeenProcess } from '../processes/processes.ts';
import { processGoneMs } from '../processes/register.ts';

/** Process whose CARILLON_SECRET differs in a way that matters. */
export interface KeyMismatch extends Pick<SeenProcess, 'kind' | 'host' | 'pid'> {
  /** `cannotRead`: it lacks the first key; `encryptsOtherwise`: another key is its first one; `unknown`: an older version. */
  problem: 'cannotRead' | 'encryptsOtherwise' | 'unknown';
}

/** Lists the running processes that do not encrypt under the key `first`. */
export async function listKeyMismatches(db: Handle, first: string): Promise<KeyMismatch[]> {
  const reports = await listReports(db, processGoneMs);
  const keysOf = new Map(reports.map(({ id, report }) => [id, report.secretKeys]));
  return (await listProcesses(db, processGoneMs)).flatMap(({ id, kind, host, pid }) => {
    const keys = keysOf.get(id);
    if (keys?.[0] === first) return [];
    const problem = keys?.includes(first) ? 'encryptsOtherwise' : keys ? 'cannotRead' : 'unknown';
    return [{ kind, host, pid, problem }];
  });
}
