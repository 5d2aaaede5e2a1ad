import { z } from 'zod';
import { jsonValue } from '../../../../shared/domain/json-schema.ts';
import { devicesBody, queryBody } from '../../../../shared/domain/pushes/body.ts';
import { audience } from '../../../replies/admin/sending.ts';
import { ofPush } from '../../../replies/refusals.ts';
import { json, operatorBody, route } from '../../../route.ts';

/** Target of a push; the service checks its members as of a push. */
const target = z.strictObject({
  where: jsonValue.optional(),
  cql: jsonValue.optional(),
  channels: jsonValue.optional(),
  device_ids: jsonValue.optional(),
  device_type: jsonValue.optional(),
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

/** For the reference: the members as of a push. */
const documentedTarget = target.extend({
  ...queryBody.pick({ where: true, cql: true, channels: true, prod: true, topic: true }).shape,
  ...devicesBody.pick({ device_ids: true, device_type: true, device_profile: true, vendor: true }).partial()
    .shape,
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
    documentedBody: documentedTarget,
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
