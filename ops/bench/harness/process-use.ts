import { readFile } from 'node:fs/promises';

/** Clock ticks per second in /proc: fixed by Linux. */
const ticksPerSecond = 100;

/** What a process used so far, as Linux counts it. Undefined where there is no /proc. */
export interface ProcessUse {
  /** Processor time of all its threads, own and the kernel's for it. */
  cpuSeconds: number;
  /** The most memory it ever had resident (VmHWM). */
  peakMegabytes: number;
  /** What it has resident now (VmRSS). */
  residentMegabytes: number;
}

export async function processUse(pid: number | undefined): Promise<ProcessUse | undefined> {
  try {
    const [stat, status] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/status`, 'utf8'),
    ]);
    // The name in parentheses may hold spaces; utime and stime are the 14th and 15th field (proc(5)).
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
