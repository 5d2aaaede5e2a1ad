import { z } from 'zod';
import { pushStates } from '../../../../shared/domain/pushes/record.ts';
import { listedPush, pushDetail } from '../../../replies/admin/records.ts';
import { keysetPageOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';
import { countQuery, pageOf, pageQuery, timeQuery } from '../../../services/operator/lists/page.ts';

/** Push records of an app (protocol/admin-api.md#pushes). */
const base = '/console/api/apps/:appId/notifications';

const state = z.enum(pushStates, `expected ${pushStates.join(', ')}`);

const listQuery = z.object({
  ...pageQuery,
  status: z
    .string('expected states, separated by commas')
    .transform((text) => text.split(','))
    .pipe(z.array(state).max(pushStates.length))
    .optional()
    .describe('States, separated by commas.'),
  recurring: z.coerce
    .number('expected the id of a recurring push')
    .int('expected the id of a recurring push')
    .min(1, 'expected the id of a recurring push')
    .max(Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Recurring push that made the pushes.'),
  source: z
    .string('expected one source')
    .max(64)
    .optional()
    .describe('`from-service` of the record.'),
  text: z
    .string('expected one text')
    .min(1)
    .max(200)
    .optional()
    .describe('Part of the content in any case, or an id.'),
  from: timeQuery.describe('Accepted at this time or later.'),
  to: timeQuery.describe('Accepted before this time.'),
  count: countQuery,
});

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listAppPushes',
    summary: 'Lists the pushes of an app including cancelled pushes, newest first.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(listedPush),
    refusals: ['notFound', 'tooLarge'],
    handle: async ({ operator, params, query }, { pushList }) => {
      const { status: states, count, ...filter } = query;
      const request = { ...filter, ...pageOf(query), states, isCounted: count === true };
      return json(await pushList.list(operator, params.appId ?? '', request));
    },
  }),
  route({
    method: 'GET',
    path: `${base}/:id`,
    operation: 'getAppPush',
    summary:
      'Returns the record of a push with its request and the profiles that it stopped using.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: pushDetail,
    refusals: ['objectNotFound'],
    handle: async ({ operator, params }, { pushList }) =>
      json(await pushList.get(operator, params.appId ?? '', params.id ?? '')),
  }),
];
