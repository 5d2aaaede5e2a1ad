import { z } from 'zod';
import { formats } from '../../../shared/domain/webhooks/endpoint.ts';
import { eventTypeNames } from '../../../shared/domain/webhooks/event-types.ts';
import { component, count, timestamp } from '../common.ts';

export const webhook = component(
  'Webhook',
  z.strictObject({
    name: z.string(),
    url: z.string().describe('Only owners see the whole URL of a chat.'),
    events: z.array(z.enum(eventTypeNames)),
    format: z.enum(formats),
    language: z.enum(['en', 'zh']).nullable().describe('Language of chat messages, if it is set.'),
    isEnabled: z.boolean(),
    offReason: z
      .enum(['gone', 'failing'])
      .nullable()
      .describe('Why the service switched it off: it answered 410, or failed for a day.'),
    offAt: timestamp.nullable(),
    failures: count.describe('Failed attempts since the last success.'),
    failingSince: timestamp.nullable(),
    waiting: count.describe('Deliveries that wait.'),
    oldestWaitingAt: timestamp.nullable(),
    dropped: count.describe('Events that were dropped because too many deliveries waited.'),
    droppedAt: timestamp.nullable(),
    previousSecretUntil: timestamp
      .nullable()
      .describe(
        'End of the secret before the last rotation. Until then requests have two signatures.',
      ),
    createdAt: timestamp,
    updatedAt: timestamp,
    secret: z
      .string()
      .optional()
      .describe('Secret of the signatures, after a creation and a rotation only.'),
  }),
);

export const webhookDelivery = component(
  'WebhookDelivery',
  z.strictObject({
    id: z.string().describe('Header `webhook-id` of its requests.'),
    type: z.string(),
    app: z.string().nullable().describe('App of the event. Null for an event of the service.'),
    state: z.enum(['waiting', 'delivered', 'failed']),
    attempts: count,
    status: z.int().nullable().describe('HTTP status of the last attempt.'),
    reason: z.string().nullable().describe('Why the last attempt failed.'),
    response: z.string().nullable().describe('First 1 KB of the last response.'),
    occurredAt: timestamp,
    attemptedAt: timestamp.nullable(),
    nextAttemptAt: timestamp.nullable(),
  }),
);
