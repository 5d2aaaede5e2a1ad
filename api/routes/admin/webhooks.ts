import { z } from 'zod';
import type { Operator } from '../../../shared/domain/admin/operator.ts';
import { endpointBody, serviceOwner } from '../../../shared/domain/webhooks/endpoint.ts';
import { eventTypeNames, testEventType } from '../../../shared/domain/webhooks/event-types.ts';
import { webhook, webhookDelivery } from '../../replies/admin/webhooks.ts';
import { empty, keysetPageOf, resultsOf } from '../../replies/common.ts';
import { json, noBody, type Route, route, smallBody } from '../../route.ts';
import { pageOf, pageQuery } from '../../services/operator/lists/page.ts';

const deliveriesQuery = z.object({
  ...pageQuery,
  state: z
    .enum(['waiting', 'delivered', 'failed'], { error: 'expected waiting, delivered or failed' })
    .optional()
    .describe('Only deliveries in this state.'),
  type: z
    .enum([...eventTypeNames, testEventType], { error: 'expected a type of event' })
    .optional()
    .describe('Only events of this type.'),
});

/** Endpoints of an app and of the service have the same calls (protocol/admin-api.md#webhooks). */
interface Owner {
  base: string;
  /** Part of the names of operations. */
  noun: string;
  /** Owner in the summaries. */
  text: string;
}

const keyOf = ({ params }: { params: Record<string, string> }) => ({
  appId: params.appId ?? serviceOwner,
  name: params.name ?? '',
});

const roleOf = ({ operator }: { operator: Operator }) => operator.role;

/** Calls of one endpoint. */
function endpointRoutes({ base, noun, text }: Owner): Route[] {
  const path = `${base}/:name`;
  return [
    route({
      method: 'GET',
      path: base,
      operation: `list${noun}s`,
      summary: `Lists the webhooks of ${text} with their state.`,
      auth: 'admin',
      role: 'operator',
      limit: noBody,
      reply: resultsOf(webhook),
      refusals: ['notFound'],
      handle: async (call, { webhooks }) =>
        json({ results: await webhooks.list(keyOf(call).appId, roleOf(call)) }),
    }),
    route({
      method: 'GET',
      path,
      operation: `get${noun}`,
      summary: `Returns a webhook of ${text}.`,
      auth: 'admin',
      role: 'operator',
      limit: noBody,
      reply: webhook,
      refusals: ['notFound'],
      handle: async (call, { webhooks }) => json(await webhooks.get(keyOf(call), roleOf(call))),
    }),
    route({
      method: 'PUT',
      path,
      operation: `put${noun}`,
      summary:
        `Creates or replaces a webhook of ${text}. The reply to a creation contains the secret of ` +
        'its signatures.',
      auth: 'admin',
      role: 'operator',
      limit: smallBody,
      isBodyRequired: true,
      body: endpointBody,
      reply: { 200: webhook, 201: webhook },
      refusals: ['notFound', 'forbidden', 'thresholdExceeded'],
      handle: async (call, { webhooks }) => {
        const stored = await webhooks.put(keyOf(call), call.body, roleOf(call));
        return json(stored.webhook, { status: stored.isNew ? 201 : 200 });
      },
    }),
    route({
      method: 'DELETE',
      path,
      operation: `delete${noun}`,
      summary: `Deletes a webhook of ${text} with its deliveries.`,
      auth: 'admin',
      role: 'operator',
      limit: smallBody,
      reply: empty,
      refusals: ['notFound'],
      handle: async (call, { webhooks }) => {
        await webhooks.delete(keyOf(call));
        return json({});
      },
    }),
  ];
}

/** Calls that send, and the log of deliveries. */
function deliveryRoutes({ base, noun, text }: Owner): Route[] {
  const path = `${base}/:name`;
  return [
    route({
      method: 'POST',
      path: `${path}/test`,
      operation: `test${noun}`,
      summary: `Sends an event \`${testEventType}\` to a webhook of ${text}, also while it is off.`,
      auth: 'admin',
      role: 'operator',
      changesNothing: true,
      limit: { ...smallBody, weight: 5 },
      reply: webhookDelivery,
      refusals: ['notFound'],
      handle: async (call, { webhooks }) => json(await webhooks.test(keyOf(call))),
    }),
    route({
      method: 'POST',
      path: `${path}/rotate`,
      operation: `rotate${noun}`,
      summary:
        `Replaces the secret of a webhook of ${text} and returns it. Requests have two signatures ` +
        'for 24 hours.',
      auth: 'admin',
      role: 'owner',
      limit: smallBody,
      reply: webhook,
      refusals: ['notFound'],
      handle: async (call, { webhooks }) => json(await webhooks.rotate(keyOf(call), roleOf(call))),
    }),
    route({
      method: 'GET',
      path: `${path}/deliveries`,
      operation: `list${noun}Deliveries`,
      summary: `Lists the deliveries of a webhook of ${text}, newest first.`,
      auth: 'admin',
      role: 'operator',
      limit: noBody,
      query: deliveriesQuery,
      reply: keysetPageOf(webhookDelivery),
      refusals: ['notFound'],
      handle: async (call, { webhooks }) => {
        const { state, type } = call.query;
        const filter = { state, type, ...pageOf(call.query) };
        return json(await webhooks.deliveries(keyOf(call), filter));
      },
    }),
    route({
      method: 'POST',
      path: `${path}/deliveries/:id/redeliver`,
      operation: `redeliver${noun}Delivery`,
      summary: `Sends a delivery of a webhook of ${text} again, also while the webhook is off.`,
      auth: 'admin',
      role: 'operator',
      limit: smallBody,
      reply: webhookDelivery,
      refusals: ['notFound'],
      handle: async (call, { webhooks }) =>
        json(await webhooks.redeliver(keyOf(call), call.params.id ?? '')),
    }),
  ];
}

const owners: Owner[] = [
  { base: '/console/api/apps/:appId/webhooks', noun: 'Webhook', text: 'an app' },
  { base: '/console/api/webhooks', noun: 'ServiceWebhook', text: 'the service' },
];

export default owners.flatMap((owner) => [...endpointRoutes(owner), ...deliveryRoutes(owner)]);
