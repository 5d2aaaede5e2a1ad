import { z } from 'zod';
import { flagQuery } from '../../../../shared/domain/plain-values.ts';
import { secretState } from '../../../replies/admin/rotations.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';
import type { SecretState } from '../../../services/operator/access/secret-rotation.ts';

/** Rotation of CARILLON_SECRET (protocol/admin-api.md#secret). */
const path = '/console/api/secret/rotation';

const rotationQuery = z.object({
  count: flagQuery.describe('1 counts all values now; otherwise the last count is shown.'),
});

/** Returns the state as the admin API shows it. */
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
    path,
    operation: 'getSecretRotation',
    summary:
      'Shows the keys of CARILLON_SECRET by their ids, what is encrypted under each, and the rotation.',
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
    summary: 'Requests that dispatchers encrypt everything at rest under the first key of CARILLON_SECRET.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    reply: secretState,
    refusals: ['conflict'],
    handle: async (_call, { secretRotation }) => json(toPublic(await secretRotation.request())),
  }),
];
