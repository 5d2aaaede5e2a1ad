import { readFile } from 'node:fs/promises';

/** Clock ticks per second in /proc, a constant of Linux. */
const ticksPerSecond = 100;

/** Resource usage of a process so far. */
export interface ProcessUse {
  /** User and system CPU time of all its threads. */
  cpuSeconds: number;
  /** Peak resident memory (VmHWM). */
  peakMegabytes: number;
  /** Current resident memory (VmRSS). */
  residentMegabytes: number;
}

/** Returns the fields of /proc/<pid>/stat after the name, which may contain spaces; the first is field 3 (proc(5)). */
async function statFields(pid: number | undefined): Promise<string[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Sums utime and stime (fields 14 and 15); `withEnded` adds those of the children that ended. */
function cpuSecondsOf(fields: string[], withEnded = false): number {
  const ticks = fields.slice(11, withEnded ? 15 : 13).reduce((sum, field) => sum + Number(field), 0);
  return ticks / ticksPerSecond;
}

/**
 * Returns the processor time that all processes of a PostgreSQL server used so far, but those of `without`; the server is found
 * by one of its backends. Undefined if the server runs on another machine, or the system has no /proc.
 */
export async function databaseCpuSeconds(
  backendPid: number,
  without: readonly number[] = [],
): Promise<number | undefined> {
  try {
    const postmaster = Number((await statFields(backendPid))[1]);
    const children = await readFile(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8');
    const own = cpuSecondsOf(await statFields(postmaster), true);
    const ofChildren = await Promise.all(
      children
        .trim()
        .split(' ')
        .map(Number)
        .filter((pid) => !without.includes(pid))
        .map((pid) =>
          statFields(pid).then(
            (fields) => cpuSecondsOf(fields),
            () => 0,
          ),
        ),
    );
    return ofChildren.reduce((sum, seconds) => sum + seconds, own);
  } catch {
    return undefined;
  }
}

/** Reads the resource usage from Linux. Returns undefined if the system has no /proc. */
export async function processUse(pid: number | undefined): Promise<ProcessUse | undefined> {
  try {
    const [fields, status] = await Promise.all([statFields(pid), readFile(`/proc/${pid}/status`, 'utf8')]);
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
