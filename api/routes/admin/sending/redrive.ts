import { z } from 'zod';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { connectorIds } from '../../../../shared/domain/labels.ts';
import { common, flowControl } from '../../../../shared/domain/pushes/body.ts';
import { redrivenOutcomes } from '../../../../shared/domain/pushes/push.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { redriveForecast, undeliveredPush } from '../../../replies/admin/redrives.ts';
import { sentPush } from '../../../replies/admin/sending.ts';
import { keysetPageOf } from '../../../replies/common.ts';
import { ofPush } from '../../../replies/refusals.ts';
import { json, noBody, operatorBody, type Reply, route } from '../../../route.ts';
import { pageOf, pageQuery, timeQuery } from '../../../services/operator/lists/page.ts';
import type { RedriveRequest } from '../../../services/operator/sending/redrive.ts';
import type { SentPush } from '../../../services/operator/sending/sending.ts';

/**
 * Path of an app whose pushes are sent again to recipients that they did not reach
 * (protocol/admin-api.md#redrive).
 */
const base = '/console/api/apps/:appId';

const connector = z.enum(connectorIds, `expected ${connectorIds.join(', ')}`);
const reason = z.string('expected one reason').min(1).max(1000);

const outcomes = z
  .array(z.enum(redrivenOutcomes, `expected ${redrivenOutcomes.join(', ')}`))
  .min(1, `expected one of ${redrivenOutcomes.join(', ')}`)
  .max(redrivenOutcomes.length);

const redriveBody = z.strictObject({
  outcomes: outcomes
    .optional()
    .describe('Outcomes of the recipients to send to. All three by default.'),
  connector: connector.optional().describe('Only recipients of this connector.'),
  reason: reason
    .optional()
    .describe('Only recipients with this reason, in the form of the failures’ summary.'),
  from: timeQuery.describe('Only recipients that ended at this time or later.'),
  to: timeQuery.describe('Only recipients that ended before this time.'),
  includeUnsure: z
    .boolean('expected true or false')
    .optional()
    .describe(
      'True to include recipients whose gateway did not reply. They may have the message ' +
        'already, so it may arrive twice. False by default.',
    ),
  expiration_interval: common.expiration_interval.describe(
    'Lifetime of the redrive in seconds. By default the lifetime of the push.',
  ),
  expiration_time: common.expiration_time.describe('Time from which the redrive is not delivered.'),
  flow_control: flowControl.describe('Recipients per second. By default the rate of the push.'),
});

const requestOf = (body: z.infer<typeof redriveBody>): RedriveRequest => {
  if (body.expiration_interval && body.expiration_time)
    throw refuse('invalidParameter', detail('oneExpiry'));
  return {
    outcomes: [...new Set(body.outcomes ?? redrivenOutcomes)],
    connector: body.connector ?? null,
    reason: body.reason ?? null,
    from: body.from?.toISOString() ?? null,
    to: body.to?.toISOString() ?? null,
    includeUnsure: body.includeUnsure ?? false,
    expirationSeconds: body.expiration_interval ?? null,
    expirationTime: body.expiration_time ?? null,
    flowControl: body.flow_control,
  };
};

/** Returns the reply to an accepted redrive. */
const sent = ({ objectId, createdAt, status }: SentPush): Reply =>
  json({ objectId, createdAt: createdAt.toISOString(), status }, { status: 201 });

const pushOf = (params: Record<string, string>) => ({
  appId: params.appId ?? '',
  publicId: params.id ?? '',
});

const resendBody = z.strictObject({
  outcomes: outcomes.describe('Outcomes of the recipients to send to.'),
});

const listQuery = z.object({
  ...pageQuery,
  connector: connector.optional().describe('Only recipients of this connector are counted.'),
  reason: reason.optional().describe('Only pushes with a recipient that has this reason.'),
  from: timeQuery.describe('Finished at this time or later.'),
  to: timeQuery.describe('Accepted before this time.'),
});

const refusals = ['notFound', 'objectNotFound', 'conflict'] as const;

export default [
  route({
    method: 'GET',
    path: `${base}/undelivered`,
    operation: 'listUndelivered',
    summary:
      'Lists finished pushes with recipients that failed, expired or were capped, newest ' +
      'first, with the number of recipients in redrives.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(undeliveredPush),
    refusals: ['notFound', 'tooLarge'],
    handle: async ({ params, query }, { redriveForecasts }) =>
      json(await redriveForecasts.list(params.appId ?? '', { ...query, ...pageOf(query) })),
  }),
  route({
    method: 'POST',
    path: `${base}/notifications/:id/redrive/explain`,
    operation: 'explainRedrive',
    summary:
      'Returns how many recipients a redrive has and which limits apply. Sends nothing. The ' +
      'body is the same as for the redrive.',
    auth: 'admin',
    role: 'sender',
    changesNothing: true,
    limit: operatorBody,
    body: redriveBody,
    reply: redriveForecast,
    refusals: [...refusals, 'tooLarge'],
    handle: async ({ params, body }, { redriveForecasts }) =>
      json(await redriveForecasts.explain(pushOf(params), requestOf(body))),
  }),
  route({
    method: 'POST',
    path: `${base}/notifications/:id/redrive`,
    operation: 'redriveAppPush',
    summary:
      'Sends a finished push again to the selected recipients that it certainly did not ' +
      'reach. Each recipient gets it at most once. `Idempotency-Key` is the `req_id` of the ' +
      'redrive.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    body: redriveBody,
    status: 201,
    reply: sentPush,
    refusals: [...refusals, ...ofPush],
    handle: async ({ operator, params, body, idempotencyKey }, { redrives }) =>
      sent(
        await redrives.redrive(operator, pushOf(params), { ...requestOf(body), idempotencyKey }),
      ),
  }),
  route({
    method: 'POST',
    path: `${base}/notifications/:id/resend`,
    operation: 'resendAppPush',
    summary: 'As `redrive`, with outcomes only.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    isBodyRequired: true,
    body: resendBody,
    status: 201,
    reply: sentPush,
    refusals: [...refusals, ...ofPush],
    handle: async ({ operator, params, body }, { redrives }) =>
      sent(await redrives.redrive(operator, pushOf(params), requestOf(body))),
  }),
];
