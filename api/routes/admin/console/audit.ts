import { z } from 'zod';
import { connectorIds } from '../../../../shared/domain/labels.ts';
import { outcomes } from '../../../../shared/domain/outcome.ts';
import { auditEntry } from '../../../replies/admin/access.ts';
import {
  failureGroup,
  gatewayMessage,
  pushFailure,
  pushTimeline,
} from '../../../replies/admin/service.ts';
import { keysetPageOf, resultsOf } from '../../../replies/common.ts';
import { json, noBody, route } from '../../../route.ts';
import { pageOf, pageQuery, timeQuery } from '../../../services/operator/lists/page.ts';

const text = z.string('expected one text').min(1).max(200).optional();

const auditQuery = z.object({
  ...pageQuery,
  app: text.describe('Id of an app.'),
  actor: text.describe('Name of a token. `admin` for CARILLON_ADMIN_TOKEN.'),
  action: text.describe('Such as `profile.put`, or `profile` for all changes of profiles.'),
  target: text.describe('Id or name of what was changed.'),
  from: timeQuery.describe('Only changes from this time on.'),
  to: timeQuery.describe('Only changes before this time.'),
});

/** Maximum length of the parameter `topics` (protocol/admin-api.md#live-updates). */
const maxLength = 2000;
const maxTopics = 10;

const eventsQuery = z.object({
  topics: z
    .string('expected topics, separated by commas')
    .min(1, 'must not be empty')
    .max(maxLength, 'is too long')
    .transform((text) => text.split(','))
    .pipe(z.array(z.string()).max(maxTopics, `expected at most ${maxTopics} topics`))
    .describe(
      '`push:<appId>/<objectId>`, `overview:<appId>`, `overview`, `breakers`, `queues`. ' +
        'Separate several by commas.',
    ),
});

/** Path of the failures and timeline of a push (protocol/admin-api.md#failures). */
const base = '/console/api/apps/:appId/notifications/:id';

const maxStepSeconds = 86_400;

const failureQuery = z.object({
  ...pageQuery,
  connector: z
    .enum(connectorIds, `expected ${connectorIds.join(', ')}`)
    .optional()
    .describe('Only this connector.'),
  outcome: z
    .enum(outcomes, `expected ${outcomes.join(', ')}`)
    .optional()
    .describe('Only this outcome.'),
  reason: z
    .string('expected one reason')
    .max(1000)
    .optional()
    .describe('Reason, in the form of the summary.'),
});

const timelineQuery = z.object({
  step: z.coerce
    .number('expected seconds')
    .int('expected whole seconds')
    .min(1)
    .max(maxStepSeconds)
    .default(1)
    .describe('Seconds of a step. Longer if there would be more than 600 steps.'),
});

const pushOf = ({ params }: { params: Record<string, string> }): [string, string] => [
  params.appId ?? '',
  params.id ?? '',
];

export default [
  route({
    method: 'GET',
    path: '/console/api/audit',
    operation: 'listAudit',
    summary: 'Lists the changes that callers of the admin API made, newest first.',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    query: auditQuery,
    reply: keysetPageOf(auditEntry),
    refusals: [],
    handle: async ({ query }, { audit }) => json(await audit.list({ ...query, ...pageOf(query) })),
  }),
  route({
    method: 'GET',
    path: '/console/api/events',
    operation: 'streamEvents',
    summary: 'Streams changes of pushes, the overview, breakers and queues as server-sent events.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    query: eventsQuery,
    reply: { 200: { contentType: 'text/event-stream' } },
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ operator, query }, { events }) => ({
      body: await events.open(operator, query.topics),
      type: 'text/event-stream; charset=utf-8',
      // Proxies must not buffer events. The connection ends with the stream, so that a stopping
      // server does not wait for it.
      headers: { 'X-Accel-Buffering': 'no', Connection: 'close' },
    }),
  }),
  route({
    method: 'GET',
    path: `${base}/failures`,
    operation: 'listPushFailures',
    summary: 'Lists the recipients that a push did not reach, each with the reason.',
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
    summary:
      'Counts the failures of a push by cause, most frequent first, each with the code of a ' +
      'remedy.',
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
      'Lists the gateways’ message ids of a push, oldest first. Use them to contact a ' +
      'gateway’s support.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object(pageQuery),
    reply: keysetPageOf(gatewayMessage),
    refusals: ['objectNotFound'],
    handle: async (call, { failures }) =>
      json(await failures.messages(...pushOf(call), pageOf(call.query))),
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
    handle: async (call, { failures }) =>
      json(await failures.timeline(...pushOf(call), call.query.step)),
  }),
];
