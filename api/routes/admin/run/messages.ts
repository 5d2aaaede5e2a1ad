import { z } from 'zod';
import { hasRole } from '../../../../shared/domain/admin/operator.ts';
import { listedMessage, outboxMessage, smsState } from '../../../replies/admin/apps.ts';
import { empty, keysetPageOf, resultsOf } from '../../../replies/common.ts';
import { json, noBody, route, smallBody } from '../../../route.ts';
import { idOf, pageOf, pageQuery } from '../../../services/operator/lists/page-query.ts';

/** Mails and SMS of an app (protocol/admin-api.md#outbox). */
const base = '/console/api/apps/:appId';

const listQuery = z.object({
  kind: z.enum(['sms', 'mail'], 'expected sms or mail').optional(),
  to: z
    .string('expected one address')
    .transform((text) => text.replace(/^ (?=\d)/, '+'))
    .optional(),
  state: z.enum(['waiting', 'sent', 'kept', 'failed'], 'expected waiting, sent, kept or failed').optional(),
  limit: pageQuery.limit.unwrap().optional(),
  cursor: pageQuery.cursor,
});

const defaultLimit = 50;

export default [
  route({
    method: 'GET',
    path: `${base}/outbox`,
    operation: 'listOutbox',
    summary:
      'Lists messages by mail and SMS, newest first; those that no provider could send are included. In pages with `state`, `limit` or `cursor`, and for operators, who get no texts.',
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
    summary: 'Sends a message again that failed or found no provider.',
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
