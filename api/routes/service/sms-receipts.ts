import { z } from 'zod';
import { empty } from '../../replies/common.ts';
import { json, route, smallBody } from '../../route.ts';

/**
 * Delivery receipts of SMS providers (operate/mail-and-sms.md#receipts). Twilio signs them. Aliyun
 * and Tencent Cloud call an address with a secret.
 */
const maxReceiptsBytes = 512 * 1024;

const messageOf = ({ appId = '', message = '' }: Record<string, string>) => ({
  appId,
  id: message,
});

/** Reply that Aliyun or Tencent Cloud expects. */
const receiptsReply = z.record(z.string(), z.union([z.string(), z.number()]));

export default [
  route({
    method: 'POST',
    path: '/sms-receipts/twilio/:appId/:message',
    operation: 'takeTwilioReceipt',
    summary: 'Accepts the status of an SMS from Twilio, as a signed form.',
    auth: 'none',
    hasRawBody: true,
    limit: smallBody,
    admit: (_params, { smsReceipts }) => void smsReceipts.admitTwilio(),
    reply: empty,
    refusals: ['notFound', 'unauthorized'],
    handle: async ({ params, raw }, { smsReceipts }) => {
      await smsReceipts.recordTwilio(messageOf(params), {
        signature: raw?.headers['x-twilio-signature'],
        body: raw?.text ?? '',
      });
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: '/sms-receipts/:provider/:secret',
    operation: 'takeSmsReceipts',
    summary: 'Accepts delivery receipts of an SMS provider. The body has the provider’s form.',
    auth: 'none',
    hasRawBody: true,
    limit: { bodyBytesBelow: maxReceiptsBytes },
    admit: ({ provider, secret }, { smsReceipts }) => void smsReceipts.admit(provider, secret),
    reply: receiptsReply,
    refusals: ['notFound', 'invalidParameter'],
    handle: async ({ params: { provider, secret }, raw }, { smsReceipts }) =>
      json(await smsReceipts.record(smsReceipts.admit(provider, secret), raw?.text ?? '')),
  }),
];
