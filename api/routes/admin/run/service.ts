import { z } from 'zod';
import { doctorFinding, seenProcess, waitingJob } from '../../../replies/admin/service.ts';
import { resultsOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';
import { pageQuery } from '../../../services/operator/lists/page-query.ts';

/** Processes, checks and jobs of the service (protocol/admin-api.md#processes). */

const jobsQuery = z.object({
  limit: pageQuery.limit,
  state: z.enum(['created', 'retry', 'active'], 'expected created, retry or active').optional(),
  minTries: z.coerce
    .number('expected a number')
    .int('expected a whole number')
    .min(0, 'must be at least 0')
    .max(1_000_000)
    .default(0)
    .describe('Only jobs that were tried so often.'),
});

export default [
  route({
    method: 'GET',
    path: '/console/api/processes',
    operation: 'listProcesses',
    summary: 'Lists the running api and dispatcher processes; each renews its entry every 5 s.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: resultsOf(seenProcess),
    refusals: [],
    handle: async (_call, { doctor }) => json({ results: await doctor.processes() }),
  }),
  route({
    method: 'GET',
    path: '/console/api/doctor',
    operation: 'runDoctor',
    summary: 'Runs the checks of `carillon doctor` that need the database only.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: resultsOf(doctorFinding),
    refusals: [],
    handle: async (_call, { doctor }) => json({ results: await doctor.check() }),
  }),
  route({
    method: 'GET',
    path: '/console/api/queues/:queue/jobs',
    operation: 'listJobs',
    summary: 'Lists the jobs of a queue that are not done, the oldest first.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    query: jobsQuery,
    reply: resultsOf(waitingJob),
    refusals: ['notFound', 'timedOut'],
    handle: async ({ params, query }, { queues }) =>
      json({ results: await queues.jobs(params.queue ?? '', query) }),
  }),
];
