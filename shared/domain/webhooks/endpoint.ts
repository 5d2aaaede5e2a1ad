/** Endpoints of webhooks: what an app or the service configures. */
import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { dayMs, hourMs, minuteMs } from '../../clock.ts';
import { type EventTypeName, eventTypeNames, eventTypes } from './event-types.ts';

/** Owner of the endpoints of the service, in the column `app_id`. */
export const serviceOwner = '';

/** Why the service switched an endpoint off: it answered 410, or it failed for a day. */
export type OffReason = 'gone' | 'failing';

/** Formats of a request. All but `standard` are messages for a group chat. */
export const formats = ['standard', 'feishu', 'dingtalk', 'wecom', 'slack'] as const;
export type WebhookFormat = (typeof formats)[number];

/** Limits of webhooks (docs/webhooks.md). */
export const webhookLimits = {
  /** Endpoints of an app, and of the service. */
  endpoints: 10,
  /** Deliveries of an endpoint that wait. Beyond it, new events are counted as dropped. */
  waiting: 10_000,
  /** Finished deliveries of an endpoint that are kept, and for how long. */
  kept: 10_000,
  keptMs: 30 * dayMs,
  /** Bytes of a response that are stored. */
  responseBytes: 1024,
  /** Requests to one endpoint at the same time. */
  concurrency: 4,
  /** Time from the request to the complete response. */
  timeoutMs: 15_000,
  /** Age from which a delivery is not tried any more. */
  maxAgeMs: 4 * dayMs,
  /** An endpoint is switched off if it failed for this time, and at least so many times. */
  failingMs: dayMs,
  failingAttempts: 10,
  /** Time for which the secret before a rotation signs too. */
  rotationMs: 24 * hourMs,
} as const;

/**
 * Waits before the second, third, … attempt: about three days in all (Standard Webhooks,
 * "Deliverability and reliability").
 */
export const retryWaitsMs: readonly number[] = [
  5000,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
];

/** Names of endpoints. */
export const endpointNamePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** What a caller sets. */
export const endpointBody = z.strictObject({
  url: z
    .string('expected a URL')
    .max(2048, 'must be at most 2048 characters')
    .describe('URL that receives the requests. `https`; `http` only for a private host.'),
  events: z
    .array(z.enum(eventTypeNames, { error: 'expected a type of event' }))
    .min(1, 'expected at least one type')
    .describe('Types of the events.'),
  isEnabled: z
    .boolean('expected true or false')
    .optional()
    .describe('Whether events are sent. The default is true.'),
  format: z
    .enum(formats, { error: `expected one of ${formats.join(', ')}` })
    .optional()
    .describe('Form of the requests: Standard Webhooks (the default), or a message of a chat.'),
  language: z
    .enum(['en', 'zh'], { error: 'expected en or zh' })
    .optional()
    .describe('Language of chat messages. Default: zh for Chinese chats, en for Slack.'),
  signingSecret: z
    .string('expected a text')
    .min(1, 'must not be empty')
    .max(200, 'must be at most 200 characters')
    .optional()
    .describe('Signing secret of a Feishu or DingTalk robot.'),
});
export type EndpointBody = z.infer<typeof endpointBody>;

/** Encrypted settings of an endpoint. URLs of chats contain a token. */
export const endpointSecrets = z.object({
  url: z.string(),
  /** 32 bytes in base64. */
  key: z.string(),
  signingSecret: z.string().optional(),
});
export type EndpointSecrets = z.infer<typeof endpointSecrets>;

/** Returns the types that a chat cannot show. */
export const typesForPrograms = (events: readonly EventTypeName[]): EventTypeName[] =>
  events.filter((type) => !eventTypes[type].isForPeople);

/** Creates a signing key: 32 bytes in base64. */
export const newSigningKey = (): string => randomBytes(32).toString('base64');

/** Returns a signing key in the form in which people copy it. */
export const secretText = (key: string): string => `whsec_${key}`;

/** Returns the public id of a delivery, which is also the header `webhook-id`. */
export const deliveryId = ({ id, createdAt }: { id: number; createdAt: Date }): string =>
  // The time makes ids unique after a restore, which sets the sequence of ids back.
  `msg_${id}_${createdAt.getTime().toString(36)}`;

/** Returns the number in a public id of a delivery; undefined if the text is no id. */
export function deliveryNumber(text: string): number | undefined {
  const digits = /^(?:msg_)?(\d{1,15})(?:_[0-9a-z]{1,12})?$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Content that a signature covers. */
interface SignedContent {
  id: string;
  /** Unix seconds of the attempt. */
  timestamp: number;
  body: string;
}

/**
 * Returns the header `webhook-signature`: one `v1` signature for each key (Standard Webhooks,
 * "Signature scheme").
 */
export const signatureOf = (
  keys: readonly string[],
  { id, timestamp, body }: SignedContent,
): string =>
  keys
    .map((key) => {
      const hmac = createHmac('sha256', Buffer.from(key, 'base64'));
      return `v1,${hmac.update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
