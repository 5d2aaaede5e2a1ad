import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { benchApi } from '../api/api.ts';
import { readArgs } from '../harness/arguments.ts';
import type { Figure } from '../harness/figure.ts';
import { benchPipeline } from '../pipeline/pipeline.ts';

const defaultDevices = 1_000_000;
const apiSeconds = '5';

/** Page that has the table, between two comments. */
const page = new URL('../../../docs/operate/sizing.md', import.meta.url);
const [begin, end] = ['<!-- written by npm run bench -- sizing -->', '<!-- end -->'];

/** Costs that the table rests on. Processor time is in seconds. */
export interface Costs {
  /** Recipients of the measured push. */
  devices: number;
  recipientsPerSecond: number;
  /** Of 1,000 recipients. */
  dispatcherCpu: number;
  databaseCpu: number;
  /** Of one installation with its indexes, without custom members. */
  bytes: number;
  /** Of one save of an installation. */
  saveApiCpu: number;
  saveDatabaseCpu: number;
}

/** Needs of a service. Cores are whole, at least one. */
export interface Size {
  installations: number;
  /** Rate at which all installations get a push in ten minutes. */
  recipientsPerSecond: number;
  /** Saves of installations in the busiest hour. */
  savesPerSecond: number;
  dispatcherCores: number;
  apiCores: number;
  databaseCores: number;
  databaseGigabytes: number;
  /** False: arithmetic from the measured costs. */
  isMeasured: boolean;
}

const sizes = [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/** A push to all takes ten minutes. */
const pushSeconds = 600;
/** Each device saves its installation once a day; in the busiest hour four times as many as on average do. */
const savesPerDeviceSecond = 4 / 86_400;
/** Share of a core that is planned with. */
const busy = 0.6;

/** Returns what a service of so many installations needs. */
export function sizeOf(installations: number, costs: Costs): Size {
  const recipientsPerSecond = installations / pushSeconds;
  const savesPerSecond = installations * savesPerDeviceSecond;
  const cores = (seconds: number) => Math.max(1, Math.ceil(seconds / busy));
  return {
    installations,
    recipientsPerSecond,
    savesPerSecond,
    dispatcherCores: cores((recipientsPerSecond * costs.dispatcherCpu) / 1000),
    apiCores: cores(savesPerSecond * costs.saveApiCpu),
    databaseCores: cores(
      (recipientsPerSecond * costs.databaseCpu) / 1000 + savesPerSecond * costs.saveDatabaseCpu,
    ),
    databaseGigabytes: (installations * costs.bytes) / 1e9,
    isMeasured: installations <= costs.devices && recipientsPerSecond <= costs.recipientsPerSecond,
  };
}

const number = (value: number): string => {
  const digits = value >= 100 ? 0 : value >= 1 ? 1 : 2;
  return value.toLocaleString('en', { maximumFractionDigits: digits });
};

/** Returns the table as Markdown. */
export function sizingTable(costs: Costs): string {
  const rows = sizes.map((installations) => sizeOf(installations, costs));
  return [
    '| installations | recipients/s for a push to all in 10 min | saves/s in the busiest hour | dispatcher cores | api cores | PostgreSQL cores | installations on disk | |',
    '|---|---|---|---|---|---|---|---|',
    ...rows.map(
      (row) =>
        `| ${number(row.installations)} | ${number(row.recipientsPerSecond)} | ${number(row.savesPerSecond)} | ${row.dispatcherCores} | ${row.apiCores} | ${row.databaseCores} | ${number(row.databaseGigabytes)} GB | ${row.isMeasured ? 'within the measured' : 'arithmetic'} |`,
    ),
    '',
    `Measured: ${number(costs.recipientsPerSecond)} recipients/s for a push to ${number(costs.devices)}; per 1,000 recipients ${number(costs.dispatcherCpu * 1000)} ms of the`,
    `dispatcher and ${number(costs.databaseCpu * 1000)} ms of PostgreSQL; per save ${number(costs.saveApiCpu * 1000)} ms of the api and ${number(costs.saveDatabaseCpu * 1000)} ms of PostgreSQL; ${number(costs.bytes)} bytes per installation.`,
  ].join('\n');
}

/**
 * Measures a push to `args[0]` devices (1,000,000 by default) and saves of installations, and writes the table of
 * docs/operate/sizing.md from them.
 */
export async function benchSizing(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const [devices = defaultDevices] = readArgs(args).numbers;
  const pushed = await benchPipeline([String(devices), '--gateway', 'quick'], log);
  const called = await benchApi([apiSeconds], log);
  const costs = costsOf([...pushed, ...called], devices);
  await writeTable(sizingTable(costs));
  log(`docs/operate/sizing.md is written`);
  return sizes.map((installations) => ({
    name: `${number(installations)} installations, all cores`,
    value: coresOf(sizeOf(installations, costs)),
    unit: 'cores',
  }));
}

const coresOf = ({ dispatcherCores, apiCores, databaseCores }: Size): number =>
  dispatcherCores + apiCores + databaseCores;

function costsOf(figures: Figure[], devices: number): Costs {
  const find = (name: string): number => {
    const figure = figures.find((one) => one.name.endsWith(name));
    if (!figure) throw new Error(`no figure is named ${name}`);
    return figure.value;
  };
  return {
    devices,
    recipientsPerSecond: find('throughput'),
    dispatcherCpu: find(': dispatcher CPU'),
    databaseCpu: find(': PostgreSQL CPU'),
    bytes: find('installation on disk'),
    saveApiCpu: find('installation saves: api CPU') / 1e6,
    saveDatabaseCpu: find('installation saves: PostgreSQL CPU') / 1e6,
  };
}

async function writeTable(table: string): Promise<void> {
  const text = await readFile(page, 'utf8');
  const [before, after] = [text.indexOf(begin), text.indexOf(end)];
  if (before < 0 || after < before) throw new Error('docs/operate/sizing.md has no place for the table');
  await mkdir(dirname(page.pathname), { recursive: true });
  await writeFile(page, `${text.slice(0, before + begin.length)}\n${table}\n${text.slice(after)}`);
}
