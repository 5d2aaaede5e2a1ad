import { z } from 'zod';
import { hasRole } from '../../../../shared/domain/admin/operator.ts';
import { listedMessage, outboxMessage, smsState } from '../../../replies/admin/apps.ts';
import { messageForecast, redrivenMessages } from '../../../replies/admin/redrives.ts';
import { empty, keysetPageOf, resultsOf } from '../../../replies/common.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../../route.ts';
import { idOf, pageOf, pageQuery, timeQuery } from '../../../services/operator/lists/page.ts';

/** Mails and SMS of an app (protocol/admin-api.md#outbox). */
const base = '/console/api/apps/:appId';

const listQuery = z.object({
  kind: z
    .enum(['sms', 'mail'], 'expected sms or mail')
    .optional()
    .describe('Only SMS, or only mail.'),
  to: z
    .string('expected one address')
    .transform((text) => text.replace(/^ (?=\d)/, '+'))
    .optional()
    .describe('Only messages to this address or number.'),
  state: z
    .enum(['waiting', 'sent', 'kept', 'failed'], 'expected waiting, sent, kept or failed')
    .optional()
    .describe('Only messages in this state.'),
  limit: pageQuery.limit.unwrap().optional().describe('Maximum number of results.'),
  cursor: pageQuery.cursor,
});

const defaultLimit = 50;

const redriveBody = z.strictObject({
  kind: listQuery.shape.kind.describe('Only messages of this kind.'),
  state: z
    .enum(['failed', 'kept'], 'expected failed or kept')
    .optional()
    .describe('`failed` by default. `kept` means that no provider was configured.'),
  reason: z
    .string('expected one reason')
    .min(1)
    .max(1000)
    .optional()
    .describe('Only with this reason.'),
  from: timeQuery.describe('Only messages of this time or later.'),
  to: timeQuery.describe('Only messages before this time.'),
  cursor: pageQuery.cursor.describe('`next` of the previous call.'),
});

const redriveOf = ({ state = 'failed', cursor, ...filter }: z.infer<typeof redriveBody>) => ({
  ...filter,
  state,
  cursor: cursor === undefined ? undefined : Number(cursor),
});

export default [
  route({
    method: 'GET',
    path: `${base}/outbox`,
    operation: 'listOutbox',
    summary:
      'Lists mails and SMS messages, newest first, including messages that no provider could ' +
      'send. Returns pages if `state`, `limit` or `cursor` is set. Operators always get ' +
      'pages, without texts.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    query: listQuery,
    reply: z.union([resultsOf(outboxMessage), keysetPageOf(listedMessage)]),
    refusals: ['notFound'],
    handle: async ({ operator, params, query }, { outbox }) => {
      const { kind, to, state, limit, cursor } = query;
      const appId = params.appId ?? '';
      const isPage = state !== undefined || limit !== undefined || cursor !== undefined;
      if (!isPage && hasRole(operator.role, 'owner'))
        return json({ results: await outbox.list(appId, { kind, to }) });
      const page = pageOf({ limit: limit ?? defaultLimit, cursor });
      return json(await outbox.page(operator, appId, { kind, to, state, ...page }));
    },
  }),
  route({
    method: 'POST',
    path: `${base}/outbox/:id/retry`,
    operation: 'retryMessage',
    summary: 'Sends a message again that failed or had no provider.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound', 'conflict'],
    handle: async ({ params }, { outbox }) => {
      await outbox.retry(params.appId ?? '', idOf(params.id));
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: `${base}/outbox/redrive/explain`,
    operation: 'explainMessageRedrive',
    summary:
      'Counts by cause the messages that a redrive of the outbox would send again. Sends nothing.',
    auth: 'admin',
    role: 'operator',
    changesNothing: true,
    limit: operatorBody,
    body: redriveBody,
    reply: messageForecast,
    refusals: ['notFound'],
    handle: async ({ params, body }, { messageRedrives }) =>
      json(await messageRedrives.explain(params.appId ?? '', redriveOf(body))),
  }),
  route({
    method: 'POST',
    path: `${base}/outbox/redrive`,
    operation: 'redriveMessages',
    summary:
      'Sends messages again that failed or had no provider, oldest first, at most 1000. Skips ' +
      'expired codes.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    body: redriveBody,
    reply: redrivenMessages,
    refusals: ['notFound'],
    handle: async ({ params, body }, { messageRedrives }) =>
      json(await messageRedrives.redrive(params.appId ?? '', redriveOf(body))),
  }),
  route({
    method: 'GET',
    path: `${base}/sms-state`,
    operation: 'getSmsState',
    summary: 'Returns the balance, budgets and suspended countries of the SMS of an app.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: smsState,
    refusals: ['notFound'],
    handle: async ({ params }, { outbox }) => json(await outbox.smsState(params.appId ?? '')),
  }),
];
