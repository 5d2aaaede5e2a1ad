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

/** Reads the resource usage from Linux. Returns undefined where there is no /proc. */
export async function processUse(pid: number | undefined): Promise<ProcessUse | undefined> {
  try {
    const [stat, status] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/status`, 'utf8'),
    ]);
    // The name in parentheses may contain spaces; utime and stime are the 14th and 15th field (proc(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const megabytes = (line: RegExp) => (Number(line.exec(status)?.[1]) * 1024) / 1e6;
    return {
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
      peakMegabytes: megabytes(/^VmHWM:\s+(\d+) kB$/m),
      residentMegabytes: megabytes(/^VmRSS:\s+(\d+) kB$/m),
    };
  } catch {
    return undefined;
  }
}
