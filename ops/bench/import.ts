import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { systemClock } from '../../shared/clock.ts';
import { currentEnvironment } from '../../shared/config/config.ts';
import { importFlags } from '../../shared/process/memory.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';
import { type Figure, readArgs } from './harness/arguments.ts';
import { type Bench, withBench } from './harness/bench-service.ts';
import {
  type BenchApp,
  createApp,
  planOf,
  push,
  untilDone,
  untilPlanned,
} from './harness/client.ts';
import { allDatabaseCpuSeconds, processUse } from './harness/process-use.ts';

const defaultRows = 1_000_000;
const cities = [
  'Beijing',
  'Chengdu',
  'Dalian',
  'Fuzhou',
  'Guilin',
  'Harbin',
  'Jinan',
  'Kunming',
  'Lhasa',
  'Wuhan',
];
/** Condition that matches half of a tenth of the devices. */
const where = { city: 'Chengdu', level: { $lt: 50 } };
const isMeant = (i: number): boolean => i % cities.length === 1 && levelOf(i) < 50;
const levelOf = (i: number): number => Math.floor(i / cities.length) % 100;

const commandLine = fileURLToPath(moduleUrl('../cli/main.ts', import.meta.url));
const memoryPollMs = 50;
const importReply = z.object({
  seconds: z.number(),
  classes: z.object({
    _Installation: z.object({ imported: z.number(), alreadyThere: z.number() }),
  }),
});

/**
 * Imports `args[0]` installations (1,000,000) from an export file with the command line, then
 * imports them again. Then sends a push with a `where` over these installations. During the
 * measurement the service runs on a durable database.
 */
export async function benchImport(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [rows = defaultRows] = numbers;
  return withBench(log, setups[0] ?? {}, async (bench) => {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-export-'));
    try {
      const path = join(folder, '_Installation.0.jsonl');
      log(`writing an export of ${rows} installations`);
      await writeExport(path, rows, bench.gateway.apns.topics[0] ?? '');
      return await run(bench, { path, rows, log });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

interface Job {
  path: string;
  rows: number;
  log: (line: string) => void;
}

async function run(bench: Bench, { path, rows, log }: Job): Promise<Figure[]> {
  const app = await createApp(bench);
  log('importing');
  const first = await runImport(bench, app, path);
  log('importing the same file a second time');
  const secondImport = await runImport(bench, app, path);
  if (first.imported !== rows || secondImport.alreadyThere !== rows)
    throw new Error(
      `${rows} rows: ${first.imported} imported, ${secondImport.alreadyThere} there afterwards`,
    );
  const devices = Array.from({ length: rows }, (_, i) => i).filter(isMeant).length;
  const plan = await planOf(bench, app, { where });
  log(`pushing to ${devices} of them, which are found so:`);
  for (const step of plan) log(`  ${step}`);
  const objectId = await push(bench, app, { where });
  const answeredAtMs = performance.now();
  await untilPlanned(bench, app, objectId);
  const planningSeconds = (performance.now() - answeredAtMs) / 1000;
  const { successes } = await untilDone(bench, app, objectId);
  const seconds = (performance.now() - answeredAtMs) / 1000;
  const { distinct, repeats } = await bench.gateway.observe();
  if (successes !== devices || distinct !== devices || repeats !== 0)
    throw new Error(`${devices} devices: ${successes} sent, ${distinct} reached, ${repeats} twice`);
  return [
    { name: 'rows', value: rows, unit: 'installations' },
    { name: 'export', value: (await stat(path)).size / 1e6, unit: 'MB' },
    { name: 'import', value: first.seconds, unit: 's' },
    { name: 'import, rate', value: rows / first.seconds, unit: 'installations/s' },
    {
      name: 'import, CPU of its process per 1,000',
      value: (first.cpuSeconds / rows) * 1000,
      unit: 's',
    },
    {
      name: 'import, CPU of PostgreSQL per 1,000',
      value: (first.databaseSeconds / rows) * 1000,
      unit: 's',
    },
    { name: 'import, peak resident memory', value: first.peakMegabytes, unit: 'MB' },
    { name: 'again, all of them there', value: secondImport.seconds, unit: 's' },
    { name: 'again, peak resident memory', value: secondImport.peakMegabytes, unit: 'MB' },
    { name: 'push to a where', value: devices, unit: 'recipients' },
    { name: `push, planned by ${indexIn(plan)}`, value: planningSeconds, unit: 's' },
    { name: 'push, answer to done', value: seconds, unit: 's' },
    { name: 'push, throughput', value: devices / seconds, unit: 'recipients/s' },
  ];
}

/** Returns the names of the indexes that the query plan uses for the condition. */
function indexIn(plan: string[]): string {
  const names = plan.flatMap((step) => /using (\S+)/.exec(step)?.[1] ?? []);
  return names.length > 0 ? names.join(' and ') : 'reading all of them';
}

/** Runs the import in a separate process, as an operator does. */
async function runImport({ db }: Bench, app: BenchApp, path: string) {
  const databaseBefore = await allDatabaseCpuSeconds(db);
  const child = spawn(
    process.execPath,
    [...importFlags, commandLine, 'import', path, '--app', app.appId, '--json'],
    {
      env: { ...currentEnvironment(), DATABASE_URL: db.url },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  // Each sample replaces the previous sample, because both values only grow.
  let use = { cpuSeconds: 0, peakMegabytes: 0 };
  const watch = setInterval(async () => {
    const now = await processUse(child.pid);
    if (now && now.peakMegabytes > 0) use = now;
  }, memoryPollMs);
  try {
    const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    if (code !== 0) throw new Error(`the import ended with ${code}: ${output}`);
    const { seconds, classes } = importReply.parse(JSON.parse(output));
    const databaseSeconds = (await allDatabaseCpuSeconds(db)) - databaseBefore;
    return { seconds, databaseSeconds, ...use, ...classes._Installation };
  } finally {
    clearInterval(watch);
  }
}

/**
 * Writes the export. Device number i has `i` in the last eight digits of its token
 * (gateway/gateway.ts).
 */
async function writeExport(path: string, rows: number, topic: string): Promise<void> {
  const file = createWriteStream(path);
  file.write('#filetype:JSON-streaming {"type":"Class","class":"_Installation"}\n');
  const updatedAt = new Date(systemClock.now()).toISOString();
  for (let i = 0; i < rows; i += 1)
    if (!file.write(`${JSON.stringify(installation(i, { topic, updatedAt }))}\n`))
      await once(file, 'drain');
  file.end();
  await once(file, 'close');
}

function installation(
  i: number,
  { topic, updatedAt }: { topic: string; updatedAt: string },
): object {
  const digest = createHash('sha256').update(String(i)).digest('hex');
  return {
    objectId: digest.slice(0, 24),
    deviceType: 'ios',
    deviceToken: digest.slice(0, 56) + i.toString(16).padStart(8, '0'),
    apnsTopic: topic,
    channels: i % 3 === 0 ? ['news'] : ['news', `room-${i % 1000}`],
    timeZone: 'Asia/Shanghai',
    badge: 0,
    city: cities[i % cities.length],
    level: levelOf(i),
    user: { __type: 'Pointer', className: '_User', objectId: digest.slice(24, 48) },
    createdAt: '2024-03-01T08:00:00.000Z',
    updatedAt,
  };
}
