import { z } from 'zod';
import { jsonObject } from '../../../../shared/domain/json-schema.ts';
import { deletedCount } from '../../../replies/admin/objects.ts';
import { empty } from '../../../replies/common.ts';
import { installation } from '../../../replies/objects.ts';
import { ofInstallation, ofQuery } from '../../../replies/refusals.ts';
import { installationChanges } from '../../../requests/objects.ts';
import { installationBody, json, operatorBody, route, smallBody } from '../../../route.ts';
import { maxDeleted } from '../../../services/operator/devices/devices.ts';

/** Changes of devices by operators (protocol/admin-api.md#devices). */
const base = '/console/api/apps/:appId/installations';

const deletion = z.strictObject({
  where: jsonObject.describe('Condition. `{}` means all installations of the app.'),
  expected: z
    .int('expected a whole number')
    .min(0, 'must be at least 0')
    .max(maxDeleted, `must be at most ${maxDeleted}: delete them by narrower conditions`)
    .describe('Number of matches that the caller has seen.'),
});

export default [
  route({
    method: 'PUT',
    path: `${base}/:id`,
    operation: 'updateAppInstallation',
    summary:
      'Changes members of an installation, as `PUT /1.1/installations/:objectId` does with ' +
      'the master key.',
    auth: 'admin',
    role: 'operator',
    limit: installationBody,
    body: installationChanges,
    reply: installation,
    refusals: ['notFound', 'noSuchObject', ...ofInstallation],
    handle: async ({ params, body }, { deviceEdits }) =>
      json(await deviceEdits.update(params.appId ?? '', params.id ?? '', body)),
  }),
  route({
    method: 'DELETE',
    path: `${base}/:id`,
    operation: 'deleteAppInstallation',
    summary: 'Deletes an installation.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async ({ params }, { deviceEdits }) => {
      await deviceEdits.delete(params.appId ?? '', params.id ?? '');
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: `${base}/delete`,
    operation: 'deleteMatchingInstallations',
    summary:
      'Deletes the installations that match a condition. Returns 409 if their number is not ' +
      'the expected number.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    body: deletion,
    reply: deletedCount,
    refusals: ['notFound', 'conflict', ...ofQuery],
    handle: async ({ operator, params, body }, { deviceEdits }) =>
      json({ deleted: await deviceEdits.deleteAll(operator, params.appId ?? '', body) }),
  }),
];
