import { z } from 'zod';
import { jsonValue } from '../../../../shared/domain/json-schema.ts';
import { devicesBody, queryBody } from '../../../../shared/domain/pushes/body.ts';
import { audience } from '../../../replies/admin/sending.ts';
import { ofPush } from '../../../replies/refusals.ts';
import { json, operatorBody, route } from '../../../route.ts';

/** Target of a push; the service checks its members as of a push. */
const target = z.strictObject({
  where: jsonValue.optional().describe(queryBody.shape.where.description ?? ''),
  cql: jsonValue.optional().describe(queryBody.shape.cql.description ?? ''),
  channels: jsonValue.optional().describe(queryBody.shape.channels.description ?? ''),
  device_ids: jsonValue.optional().describe(devicesBody.shape.device_ids.description ?? ''),
  device_type: jsonValue.optional().describe(devicesBody.shape.device_type.description ?? ''),
  device_profile: jsonValue.optional(),
  vendor: jsonValue.optional(),
  prod: jsonValue.optional(),
  topic: jsonValue.optional(),
  sample: z
    .int('expected a whole number')
    .min(0)
    .max(20, 'must be at most 20')
    .default(0)
    .describe('Devices to show.'),
  clauses: z.boolean('expected true or false').default(false).describe('Count without each clause too.'),
});

/** Audience of a condition while it is written (protocol/admin-api.md#audience). */
export default [
  route({
    method: 'POST',
    path: '/console/api/apps/:appId/audience',
    operation: 'countAudience',
    summary: 'Counts the devices that a push with this target would go to, by connector.',
    auth: 'admin',
    role: 'viewer',
    changesNothing: true,
    limit: operatorBody,
    body: target,
    reply: audience,
    refusals: ['notFound', ...ofPush],
    handle: async ({ operator, params, body, prodHeader, gone }, { audience: audiences }) => {
      const { sample, clauses, ...members } = body;
      const asked = Object.entries(members).filter(([, value]) => value !== undefined);
      const request = { target: Object.fromEntries(asked), sample, clauses, prodHeader, gone };
      return json(await audiences.count(operator, params.appId ?? '', request));
    },
  }),
];
