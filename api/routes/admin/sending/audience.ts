import { z } from 'zod';
import type { Json } from '../../../../shared/domain/json.ts';
import { devicesBody, queryBody } from '../../../../shared/domain/pushes/body.ts';
import { audience, sampledField, sampledValue } from '../../../replies/admin/sending.ts';
import { resultsOf } from '../../../replies/common.ts';
import { ofPush } from '../../../replies/refusals.ts';
import { partParsedByService, presentMembers } from '../../../requests/checked.ts';
import { json, noBody, operatorBody, route } from '../../../route.ts';

const members = {
  ...queryBody.pick({ where: true, cql: true, channels: true, prod: true, topic: true }).shape,
  ...devicesBody.pick({ device_ids: true, device_type: true, device_profile: true, vendor: true }).shape,
};

/** Members of the target of a push; the service parses them as of a push. */
const targetMembers: Record<string, z.ZodType<Json | undefined>> = Object.fromEntries(
  Object.entries(members).map(([name, schema]) => [name, partParsedByService(schema).optional()]),
);

const target = z.strictObject({
  ...targetMembers,
  sample: z
    .int('expected a whole number')
    .min(0)
    .max(20, 'must be at most 20')
    .default(0)
    .describe('Devices to show.'),
  clauses: z.boolean('expected true or false').default(false).describe('Count without each clause too.'),
});

/** Audience of a condition while it is written (protocol/admin-api.md#audience). */

/** Members and values for conditions (protocol/admin-api.md#suggestions). */
const query = z.object({
  prefix: z
    .string('expected one prefix')
    .max(100)
    .refine((text) => !text.includes('\0'), 'must not hold NUL')
    .default('')
    .describe('Beginning of the names.'),
});

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
      const { sample, clauses, ...asked } = body;
      const request = { target: presentMembers(asked), sample, clauses, prodHeader, gone };
      return json(await audiences.count(operator, params.appId ?? '', request));
    },
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/fields',
    operation: 'suggestFields',
    summary: 'Lists members of the newest 2000 installations with their most frequent values.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query,
    reply: resultsOf(sampledField),
    refusals: ['notFound'],
    handle: async (call, { suggestions }) =>
      json({ results: await suggestions.fields(call.operator, call.params.appId ?? '', call.query.prefix) }),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/channels',
    operation: 'suggestChannels',
    summary: 'Lists channels of the newest 2000 installations, the most frequent first.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query,
    reply: resultsOf(sampledValue),
    refusals: ['notFound'],
    handle: async (call, { suggestions }) =>
      json({ results: await suggestions.channels(call.params.appId ?? '', call.query.prefix) }),
  }),
];
