import { z } from 'zod';

/** Request of every client: a push as APNs gets it. */
export const body = Buffer.from(
  JSON.stringify({
    aps: {
      badge: '@',
      alert: {
        title: 'Your order has left',
        body: 'It will be with you between two and four this afternoon.',
      },
      sound: 'default',
      'thread-id': 'orders',
    },
    order: '6f1d3c2a',
  }).replace('"@"', ''),
);
/** Offset of the badge. */
export const badgeAt = body.indexOf('"badge":') + '"badge":'.length;

/** Shared body, with a badge. */
export const sharedBody = withBadge('1');

function withBadge(badge: string): Buffer {
  return Buffer.concat([body.subarray(0, badgeAt), Buffer.from(badge), body.subarray(badgeAt)]);
}

export const pathPrefix = '/3/device/';

/** Text of the length of a provider token. */
const jwt = `${'eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ'}.${'x'.repeat(64)}.${'y'.repeat(86)}`;

export const headers: Record<string, string> = {
  authorization: `bearer ${jwt}`,
  'apns-topic': 'com.example.app',
  'apns-push-type': 'alert',
  'apns-priority': '10',
  'apns-expiration': '1794567890',
};
export const requestHeaderName = 'apns-id';
/** Beginning of the ids of one push. */
export const idPrefix = 'eabeae54-14a8-81e5-a60b-';

export interface BenchRecipient {
  token: string;
  id: string;
  /** Last digits of `id`. */
  idEnd: string;
  badge: string;
}

/** Recipients of one batch, which every client repeats. Badges have two digits, so that all bodies have one length. */
export const recipients: readonly BenchRecipient[] = Array.from({ length: 1000 }, (_, n) => ({
  token: Buffer.from((n * 7919).toString(16).padStart(64, 'a1b2c3d4')).toString('latin1'),
  id: `${idPrefix}${String(n).padStart(12, '0')}`,
  idEnd: String(n).padStart(12, '0'),
  badge: String(10 + (n % 90)),
}));

export const bodyKinds = ['personal', 'shared'] as const;
export type BodyKind = (typeof bodyKinds)[number];

/** Message to a client process. */
export const order = z.object({
  client: z.string(),
  url: z.string(),
  ca: z.string(),
  body: z.enum(bodyKinds),
  warmUp: z.number(),
  requests: z.number(),
});
export type Order = z.infer<typeof order>;

/** Message of a client process. */
export const measured = z.object({ seconds: z.number(), cpuSeconds: z.number() });
export type Measured = z.infer<typeof measured>;
