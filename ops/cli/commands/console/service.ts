import { Option } from 'commander';
import { z } from 'zod';
import { wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { connect, part } from '../../service.ts';

const states = ['created', 'retry', 'active'];

/** Adds `carillon processes` and `carillon jobs`: what runs, and what does not move. */
export function addServiceReports({ program, act }: Shell): void {
  program
    .command('processes')
    .description('list the running api and dispatcher processes')
    .action(act(showProcesses));
  program
    .command('jobs <queue>')
    .description('list jobs of a queue that are not done, the oldest first')
    .addOption(new Option('--state <state>', 'only in this state').choices(states))
    .option('--min-tries <n>', 'only jobs that were tried so often')
    .option('--limit <n>', 'largest number of results, at most 200')
    .action(act(showJobs));
}

const processes = z.object({
  results: z.array(
    z.looseObject({
      kind: z.string(),
      host: z.string(),
      pid: z.number(),
      version: z.string(),
      threads: z.number(),
      connections: z.number(),
      startedAt: z.string(),
    }),
  ),
});

async function showProcesses(): Promise<Report> {
  const document = await (await connect()).admin('GET', '/processes');
  const rows = processes
    .parse(document)
    .results.map((one) => [
      one.kind,
      one.host,
      one.pid,
      one.version,
      one.threads,
      one.connections,
      one.startedAt,
    ]);
  const headings = ['kind', 'host', 'pid', 'version', 'threads', 'connections', 'started'];
  return { document, text: table(headings, rows) };
}

const jobs = z.object({
  results: z.array(
    z.looseObject({
      id: z.string(),
      state: z.string(),
      tries: z.number(),
      appId: z.string().nullable(),
      pushId: z.string().nullable(),
      createdAt: z.string(),
      startAfter: z.string(),
    }),
  ),
});

interface JobOptions {
  state?: string;
  minTries?: string;
  limit?: string;
}

async function showJobs(queue: string, { state, minTries, limit }: JobOptions): Promise<Report> {
  const query = new URLSearchParams({
    ...(state === undefined ? {} : { state }),
    ...(minTries === undefined ? {} : { minTries: String(wholeNumber('--min-tries', minTries)) }),
    ...(limit === undefined ? {} : { limit: String(wholeNumber('--limit', limit, 1)) }),
  });
  const document = await (await connect()).admin('GET', `/queues/${part(queue)}/jobs?${query}`);
  const rows = jobs
    .parse(document)
    .results.map((one) => [
      one.id,
      one.state,
      one.tries,
      one.appId ?? '-',
      one.pushId ?? '-',
      one.createdAt,
      one.startAfter,
    ]);
  const headings = ['job', 'state', 'tries', 'app', 'push', 'created', 'not before'];
  return { document, text: rows.length > 0 ? table(headings, rows) : 'There are no such jobs.' };
}
