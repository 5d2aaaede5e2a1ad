import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { sleep } from '../../../shared/clock.ts';

/** Memory of a container with one process, in MB (millions of bytes). */
export interface ContainerMemory {
  /** What Kubernetes counts and limits: all memory of the control group but file pages that were not used again. */
  workingSet: number;
  /** Anonymous pages: heaps and stacks. */
  anonymous: number;
  /** Resident: anonymous pages and the mapped ones of files, which containers of the same image share. */
  resident: number;
}

const groups = '/sys/fs/cgroup';
const pollMs = 2000;
/** Idle processes return memory within 20 s of their start. */
const quietPolls = 10;
const patienceMs = 120_000;

/** Waits until the memory of the process no longer falls, and returns it. Linux only, with control groups of version 1 or 2. */
export async function memoryAtRest(pid: number): Promise<ContainerMemory> {
  const endsAtMs = performance.now() + patienceMs;
  let least = await memoryOf(pid);
  for (let quiet = 0; quiet < quietPolls && performance.now() < endsAtMs; quiet += 1) {
    await sleep(pollMs);
    const memory = await memoryOf(pid);
    // A megabyte more or less is the noise of timers.
    if (memory.resident < least.resident - 1) quiet = 0;
    if (memory.resident < least.resident) least = memory;
  }
  return memoryOf(pid);
}

async function memoryOf(pid: number): Promise<ContainerMemory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kilobytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(rollup)?.[1]);
  return {
    workingSet: await workingSetOf(pid),
    anonymous: (kilobytes('Anonymous') * 1024) / 1e6,
    resident: (kilobytes('Rss') * 1024) / 1e6,
  };
}

async function workingSetOf(pid: number): Promise<number> {
  const lines = (await readFile(`/proc/${pid}/cgroup`, 'utf8')).trim().split('\n');
  const place = (controllers: RegExp) => lines.find((line) => controllers.test(line))?.split(':')[2] ?? '';
  const old = `${groups}/memory${place(/^\d+:memory:/)}`;
  const isOld = existsSync(`${old}/memory.usage_in_bytes`);
  const folder = isOld ? old : `${groups}${place(/^0::/)}`;
  const used = Number(await readFile(`${folder}/memory.${isOld ? 'usage_in_bytes' : 'current'}`, 'utf8'));
  const stat = await readFile(`${folder}/memory.stat`, 'utf8');
  const unused = new RegExp(`^${isOld ? 'total_' : ''}inactive_file (\\d+)$`, 'm').exec(stat)?.[1];
  return (used - Number(unused)) / 1e6;
}
