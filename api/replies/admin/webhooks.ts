import { z } from 'zod';
import { formats } from '../../../shared/domain/webhooks/endpoint.ts';
import { eventTypeNames } from '../../../shared/domain/webhooks/event-types.ts';
import { component, count, timestamp } from '../common.ts';

export const webhook = component(
  'Webhook',
  z.strictObject({
    name: z.string().describe('Name of the webhook.'),
    url: z.string().describe('Only owners see the whole URL of a chat.'),
    events: z.array(z.enum(eventTypeNames)).describe('Types of events that it gets.'),
    format: z.enum(formats).describe('Form of the requests.'),
    language: z.enum(['en', 'zh']).nullable().describe('Language of chat messages, if it is set.'),
    isEnabled: z.boolean().describe('Whether events are sent.'),
    offReason: z
      .enum(['gone', 'failing'])
      .nullable()
      .describe('Why the service switched it off: it answered 410, or failed for a day.'),
    offAt: timestamp
      .nullable()
      .describe('Time at which the service switched it off. Null if it did not.'),
    failures: count.describe('Failed attempts since the last success.'),
    failingSince: timestamp
      .nullable()
      .describe('Time since which deliveries fail. Null if they succeed.'),
    waiting: count.describe('Deliveries that wait.'),
    oldestWaitingAt: timestamp
      .nullable()
      .describe('Time of the oldest event that waits. Null if none waits.'),
    dropped: count.describe('Events that were dropped because too many deliveries waited.'),
    droppedAt: timestamp
      .nullable()
      .describe('Time at which events were last dropped. Null if none were.'),
    previousSecretUntil: timestamp
      .nullable()
      .describe(
        'End of the secret before the last rotation. Until then requests have two signatures.',
      ),
    createdAt: timestamp.describe('Time of the creation.'),
    updatedAt: timestamp.describe('Time of the last change.'),
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
    type: z.string().describe('Type of the event.'),
    app: z.string().nullable().describe('App of the event. Null for an event of the service.'),
    state: z.enum(['waiting', 'delivered', 'failed']).describe('State of the delivery.'),
    attempts: count.describe('Number of attempts so far.'),
    status: z.int().nullable().describe('HTTP status of the last attempt.'),
    reason: z.string().nullable().describe('Why the last attempt failed.'),
    response: z.string().nullable().describe('First 1 KB of the last response.'),
    occurredAt: timestamp.describe('Time of the event.'),
    attemptedAt: timestamp.nullable().describe('Time of the last attempt. Null before.'),
    nextAttemptAt: timestamp
      .nullable()
      .describe('Time of the next attempt. Null if no attempt follows.'),
  }),
);
