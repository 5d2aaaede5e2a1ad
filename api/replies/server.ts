import { z } from 'zod';
import { component, timestamp } from './common.ts';

export const serverTime = component(
  'ServerTime',
  z.strictObject({ __type: z.literal('Date'), iso: timestamp }),
);

const ttl = z.int().describe('Seconds for which the reply is valid.');

export const socketRoute = component(
  'SocketRoute',
  z.strictObject({
    groupId: z.string(),
    groupUrl: z.url(),
    server: z.url().describe('Address of the WebSocket.'),
    secondary: z.url(),
    ttl,
  }),
);

const host = z.string();

export const hosts = component(
  'Hosts',
  z.strictObject({
    ttl,
    api_server: host,
    push_server: host,
    engine_server: host,
    stats_server: host,
    rtm_router_server: host,
  }),
);

export const processStatus = component('ProcessStatus', z.strictObject({ status: z.string() }));

/** Reply that a gateway expects to its receipts. */
export const receiptReply = component(
  'ReceiptReply',
  z
    .strictObject({ code: z.union([z.string(), z.int()]), message: z.string() })
    .partial()
    .describe('Reply that the gateway expects. Empty if it expects none.'),
);
