import { empty } from '../../replies/common.ts';
import { receiptReply } from '../../replies/server.ts';
import { json, noBody, route } from '../../route.ts';

/** Path to which gateways send delivery receipts (shared/callbacks.ts); each connector reads the form of its gateway. */
const path = '/callbacks/:connector/:appId/:secret';

/** Limit of a call: a thousand receipts, the most that a gateway is known to merge, take some 400 KB. */
const bodyBytes = 2 * 1024 * 1024;

const addressOf = ({ connector = '', appId = '', secret = '' }: Record<string, string>) => ({
  connector,
  appId,
  secret,
});

export default [
  route({
    method: 'POST',
    path,
    operation: 'takeReceipts',
    summary: 'Accepts delivery receipts of a gateway; the body has the form of that gateway.',
    auth: 'none',
    hasRawBody: true,
    limit: { bodyBytesBelow: bodyBytes },
    admit: (params, { receipts }) => receipts.authenticate(addressOf(params)),
    reply: receiptReply,
    refusals: ['notFound', 'unauthorized', 'tooManyRequests'],
    handle: async ({ params, raw }, { receipts, date }) => {
      const call = { headers: raw?.headers ?? {}, body: raw?.text ?? '', receivedAtMs: date.nowMs() };
      return json(await receipts.record(addressOf(params), call));
    },
  }),
  // For gateways that check the address before they use it, with GET or HEAD.
  route({
    method: 'GET',
    path,
    operation: 'checkReceiptAddress',
    summary: 'Tells that the address for receipts exists; 404 where it does not.',
    auth: 'none',
    limit: noBody,
    admit: (params, { receipts }) => receipts.authenticate(addressOf(params)),
    reply: empty,
    refusals: ['notFound'],
    handle: () => json({}),
  }),
];
