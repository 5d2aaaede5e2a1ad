import { z } from 'zod';
import { sampledField, sampledValue } from '../../../replies/admin/sending.ts';
import { resultsOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';

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
