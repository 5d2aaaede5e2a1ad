import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { type Figure, readArgs } from '../harness/arguments.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
/**
 * Default time until the memory is measured. Idle processes return memory to the system within 20 s
 * after their start.
 */
const defaultIdleSeconds = 60;

/** Memory of one or more processes, in MB (millions of bytes). */
interface Memory {
  /** Resident memory. A page that processes share counts fully for each of them. */
  rss: number;
  /** Proportional memory. A page that n processes share counts as 1/n for each of them. */
  pss: number;
}

/**
 * Measures the memory of an idle `npm start` by kind of process. Measures the second start, with
 * the demo app, some seconds after the service is ready. Linux only.
 */
export async function benchMemory(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const [idleSeconds = defaultIdleSeconds] = readArgs(args).numbers;
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-memory-'));
  try {
    log('the first start creates the data directory and the demo app …');
    await stop(await start(dataDir));
    const service = await start(dataDir);
    try {
      log(`ready again; waiting ${idleSeconds} s …`);
      await sleep(idleSeconds * 1000);
      return figuresOf(await memoryByKind(service.pid ?? 0));
    } finally {
      await stop(service);
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Starts `npm start` and resolves when it is ready. */
async function start(dataDir: string): Promise<ChildProcess> {
  const env = { ...currentEnvironment(), CARILLON_DATA_DIR: dataDir, PORT: '0', METRICS_PORT: '0' };
  const child = spawn('npm', ['start'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('carillon ready')) return child;
  throw new Error('the service did not start');
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await exited;
}

const kinds = ['carillon api', 'carillon dispatcher', 'carillon sandbox', 'carillon up', 'npm'];

/**
 * Adds up the memory of a process and its descendants by kind. The title of a process tells its
 * kind. All other processes belong to PostgreSQL.
 */
async function memoryByKind(root: number): Promise<Map<string, Memory>> {
  const found = new Map<string, Memory>();
  for (const pid of await treeOf(root)) {
    const [title, rollup] = await Promise.all(
      ['cmdline', 'smaps_rollup'].map((name) =>
        readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => ''),
      ),
    );
    const kind =
      kinds.find((one) => title?.startsWith(one))?.replace('carillon ', '') ?? 'PostgreSQL';
    const sum = found.get(kind) ?? { rss: 0, pss: 0 };
    const { rss, pss } = { rss: megabytes(rollup, 'Rss'), pss: megabytes(rollup, 'Pss') };
    found.set(kind, { rss: sum.rss + rss, pss: sum.pss + pss });
  }
  return found;
}

async function treeOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const children = text.split(' ').filter(Boolean).map(Number);
  return [pid, ...(await Promise.all(children.map(treeOf))).flat()];
}

const megabytes = (rollup: string | undefined, field: string): number =>
  (Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(rollup ?? '')?.[1] ?? 0) * 1024) / 1e6;

/** Goals for the proportional memory of an idle service, in MB. A dispatcher has two threads. */
const goals = new Map([
  ['api', '≤ 90'],
  ['dispatcher', '≤ 120'],
  ['all', '≤ 450'],
]);

/**
 * Returns the figures of each kind and of all kinds. Only PSS gives a correct sum over processes.
 * RSS is the memory of a process that runs alone: its sum counts the program of Node and the
 * buffers of PostgreSQL for each process.
 */
function figuresOf(found: Map<string, Memory>): Figure[] {
  const rows = [...found].sort(([a], [b]) => a.localeCompare(b));
  return [
    ...rows.flatMap(([kind, { rss, pss }]) => [
      { name: `${kind}, resident`, value: rss, unit: 'MB' },
      proportional(kind, pss),
    ]),
    { name: 'all, resident', value: sumOf(rows, 'rss'), unit: 'MB' },
    proportional('all', sumOf(rows, 'pss')),
  ];
}

const sumOf = (rows: [string, Memory][], measure: keyof Memory): number =>
  rows.reduce((sum, [, memory]) => sum + memory[measure], 0);

function proportional(kind: string, value: number): Figure {
  const goal = goals.get(kind);
  return {
    name: `${kind}, proportional`,
    value,
    unit: 'MB',
    ...(goal === undefined ? {} : { goal }),
  };
}
