import { z } from 'zod';
import { type KeyName, keyNames } from '../../../../shared/domain/apps/app.ts';
import { flagQuery } from '../../../../shared/domain/client-values.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { rotatedKey, shownKey } from '../../../replies/admin/apps.ts';
import { secretState } from '../../../replies/admin/rotations.ts';
import { doctorFinding, seenProcess, waitingJob } from '../../../replies/admin/service.ts';
import { resultsOf } from '../../../replies/common.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';
import type { SecretState } from '../../../services/operator/access/secret-rotation.ts';
import { pageQuery } from '../../../services/operator/lists/page.ts';

/** Query parameters of the jobs of a queue (protocol/admin-api.md#processes). */
const jobsQuery = z.object({
  limit: pageQuery.limit,
  state: z
    .enum(['created', 'retry', 'active'], 'expected created, retry or active')
    .optional()
    .describe('Only jobs in this state.'),
  minTries: z.coerce
    .number('expected a number')
    .int('expected a whole number')
    .min(0, 'must be at least 0')
    .max(1_000_000)
    .default(0)
    .describe('Only jobs with at least this many tries.'),
});

const maxGraceSeconds = 365 * 24 * 3600;

const rotation = z.strictObject({
  graceSeconds: z
    .int('expected a whole number')
    .min(0, 'must be at least 0')
    .max(maxGraceSeconds, `must be at most ${maxGraceSeconds}`)
    .default(3600)
    .describe('Seconds for which the old key stays valid.'),
});

/**
 * Returns the name of an app's key from the path (protocol/admin-api.md#keys). Throws error 404 if
 * there is no such key.
 */
function keyOf({ key }: Record<string, string>): KeyName {
  const name = keyNames.find((known) => known === key);
  if (name) return name;
  throw refuse('notFound', detail('noKey', { names: keyNames.join(', ') }));
}

/** Path of the rotation of CARILLON_SECRET (protocol/admin-api.md#secret). */
const path = '/console/api/secret/rotation';

const rotationQuery = z.object({
  count: flagQuery.describe('1 counts all values now. Otherwise the last count is returned.'),
});

/** Returns the state in the form of the admin API. */
const toPublic = ({ rotation, countedAt, ...state }: SecretState) => ({
  ...state,
  countedAt: countedAt?.toISOString() ?? null,
  rotation: rotation && {
    state: rotation.finishedAt ? ('done' as const) : ('running' as const),
    requestedAt: rotation.requestedAt.toISOString(),
    finishedAt: rotation.finishedAt?.toISOString() ?? null,
    pass: rotation.pass,
    expected: rotation.expected,
    changed: rotation.changed,
    unreadable: rotation.unreadable,
  },
});

export default [
  route({
    method: 'GET',
    path: '/console/api/processes',
    operation: 'listProcesses',
    summary:
      'Lists the running api and dispatcher processes. Each process renews its entry every 5 s.',
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
    summary: 'Runs the checks of `carillon doctor` that need only the database.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    query: z.object({
      production: flagQuery.describe(
        'If true, runs the checks of `carillon doctor --production` instead.',
      ),
    }),
    reply: resultsOf(doctorFinding),
    refusals: [],
    handle: async ({ query }, { doctor }) =>
      json({ results: await (query.production ? doctor.checkProduction() : doctor.check()) }),
  }),
  route({
    method: 'GET',
    path: '/console/api/queues/:queue/jobs',
    operation: 'listJobs',
    summary: 'Lists the unfinished jobs of a queue, oldest first.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    query: jobsQuery,
    reply: resultsOf(waitingJob),
    refusals: ['notFound', 'timedOut'],
    handle: async ({ params, query }, { queues }) =>
      json({ results: await queues.jobs(params.queue ?? '', query) }),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/keys/:key',
    operation: 'getKey',
    summary: 'Returns one key of an app (`appKey`, `masterKey`, `hookKey`).',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    reply: shownKey,
    refusals: ['notFound'],
    handle: async ({ operator, params }, { apps }) => {
      const key = keyOf(params);
      const app = await apps.read(operator, params.appId ?? '');
      return json({ key, value: app[key] });
    },
  }),
  route({
    method: 'POST',
    path: '/console/api/apps/:appId/keys/:key/rotate',
    operation: 'rotateKey',
    summary:
      'Replaces a key of an app (`appKey`, `masterKey`, `hookKey`). The old key stays valid ' +
      'for some time.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    body: rotation,
    reply: rotatedKey,
    refusals: ['notFound'],
    handle: async ({ params, body }, { apps }) => {
      return json(await apps.rotateKey(params.appId ?? '', keyOf(params), body.graceSeconds));
    },
  }),
  route({
    method: 'GET',
    path,
    operation: 'getSecretRotation',
    summary:
      'Returns the keys of CARILLON_SECRET by id, the number of values encrypted with each ' +
      'key, and the rotation.',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    query: rotationQuery,
    reply: secretState,
    refusals: ['timedOut'],
    handle: async ({ query }, { secretRotation }) =>
      json(toPublic(await secretRotation.state(query.count === true))),
  }),
  route({
    method: 'POST',
    path,
    operation: 'rotateSecret',
    summary:
      'Requests that dispatchers encrypt all stored values with the first key of CARILLON_SECRET.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    reply: secretState,
    refusals: ['conflict'],
    handle: async (_call, { secretRotation }) => json(toPublic(await secretRotation.request())),
  }),
];
