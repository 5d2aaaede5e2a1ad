import { z } from 'zod';
import { connectorIds } from '../../../../shared/domain/labels.ts';
import { outcomes } from '../../../../shared/domain/outcome.ts';
import { failureGroup, gatewayMessage, pushFailure, pushTimeline } from '../../../replies/admin/failures.ts';
import { keysetPageOf, resultsOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';
import { pageOf, pageQuery } from '../../../services/operator/lists/page-query.ts';

/** Course and failures of a push (protocol/admin-api.md#failures). */
const base = '/console/api/apps/:appId/notifications/:id';

const maxStepSeconds = 86_400;

const failureQuery = z.object({
  ...pageQuery,
  connector: z.enum(connectorIds, `expected ${connectorIds.join(', ')}`).optional(),
  outcome: z.enum(outcomes, `expected ${outcomes.join(', ')}`).optional(),
  reason: z.string('expected one reason').max(1000).optional().describe('Reason, as the summary has it.'),
});

const timelineQuery = z.object({
  step: z.coerce
    .number('expected seconds')
    .int('expected whole seconds')
    .min(1)
    .max(maxStepSeconds)
    .default(1)
    .describe('Seconds of a step; longer where there would be more than 600.'),
});

const pushOf = ({ params }: { params: Record<string, string> }): [string, string] => [
  params.appId ?? '',
  params.id ?? '',
];

export default [
  route({
    method: 'GET',
    path: `${base}/failures`,
    operation: 'listPushFailures',
    summary: 'Lists the recipients that a push did not reach, with the reason of each.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: failureQuery,
    reply: keysetPageOf(pushFailure),
    refusals: ['objectNotFound'],
    handle: async (call, { failures }) =>
      json(await failures.list(...pushOf(call), { ...call.query, ...pageOf(call.query) })),
  }),
  route({
    method: 'GET',
    path: `${base}/failures/summary`,
    operation: 'summarizePushFailures',
    summary: 'Counts the failures of a push by cause, most frequent first, each with the code of a remedy.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: resultsOf(failureGroup),
    refusals: ['objectNotFound'],
    handle: async (call, { failures }) => json(await failures.summarize(...pushOf(call))),
  }),
  route({
    method: 'GET',
    path: `${base}/messages`,
    operation: 'listGatewayMessages',
    summary:
      'Lists the ids that gateways gave to the messages of a push, oldest first, for questions to their support.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object(pageQuery),
    reply: keysetPageOf(gatewayMessage),
    refusals: ['objectNotFound'],
    handle: async (call, { failures }) => json(await failures.messages(...pushOf(call), pageOf(call.query))),
  }),
  route({
    method: 'GET',
    path: `${base}/timeline`,
    operation: 'getPushTimeline',
    summary: 'Returns how many recipients were settled in each step of a push, by connector.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: timelineQuery,
    reply: pushTimeline,
    refusals: ['objectNotFound'],
    handle: async (call, { failures }) => json(await failures.timeline(...pushOf(call), call.query.step)),
  }),
];
