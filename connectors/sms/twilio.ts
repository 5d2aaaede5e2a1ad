import { z } from 'zod';
import type { SmsProviderUrl } from '../../shared/domain/messages/sms-provider.ts';
import { receiptUrl } from '../../shared/domain/messages/sms-receipts.ts';
import { type HttpResult, isTemporaryStatus } from '../../shared/http/result.ts';
import type { Provider, ProviderResult, SmsMessage } from '../provider.ts';
import { type ClientOptions, openClient, parseReply } from './client.ts';
import { type ErrorKind, kindsOf, refuseVoice, resultOf, withoutCode } from './outcomes.ts';

type TwilioUrl = Extract<SmsProviderUrl, { provider: 'twilio' }>;

const provider = 'Twilio';

/** Error codes (Twilio, "Error and Warning Dictionary"). */
export const twilioErrors = {
  smsCredentials: ['20003', '20008', '20404'],
  smsAccount: ['10001', '20005', '21608', '30002'],
  smsBalance: ['21631'],
  smsRight: ['20403'],
  smsSender: [
    '21212',
    '21603',
    '21606',
    '21659',
    '21660',
    '21701',
    '21702',
    '21703',
    '21704',
    '21705',
    '21706',
    '30032',
    '30034',
    // The address for receipts, which is PUBLIC_URL.
    '21609',
  ],
  smsQuota: ['63038', '30010'],
  smsContent: ['21602', '21617', '21619', '21620'],
  smsParameters: ['20001', '21601', '21605'],
  smsNumber: ['21211', '21214', '21217', '21265', '21421', '21604', '21614', '21635'],
  smsBarred: ['21610'],
  smsRegion: ['21408', '21612', '30450'],
  smsBusy: ['14107', '20429', '21611', '30001'],
  smsUnavailable: ['20500', '20503'],
} as const satisfies Partial<Record<ErrorKind, readonly string[]>>;

const known = kindsOf(twilioErrors);

const replyShape = z.object({
  code: z.number().int().optional().catch(undefined),
  sid: z.string().max(200).optional().catch(undefined),
});

/** Opens the provider (Twilio Programmable Messaging, Messages resource of 2010-04-01). */
export function openTwilio(
  url: TwilioUrl,
  options: ClientOptions & { publicUrl: string },
): Provider<SmsMessage> {
  const client = openClient(new URL(url.endpoint).origin, options);
  return {
    host: new URL(url.endpoint).host,
    async send(message) {
      if (message.isVoice) return refuseVoice(provider);
      const callback = receiptUrl(options.publicUrl, message);
      const form = new URLSearchParams({
        To: message.to,
        [url.from.startsWith('MG') ? 'MessagingServiceSid' : 'From']: url.from,
        Body: message.text,
        ...(callback === undefined ? {} : { StatusCallback: callback }),
      });
      const reply = await client.request({
        method: 'POST',
        path: `${pathOf(url)}/Messages.json`,
        headers: {
          authorization: authorizationOf(url),
          'content-type': 'application/x-www-form-urlencoded; charset=utf-8',
        },
        body: form.toString(),
      });
      return readReply(reply);
    },
    close: () => client.close(),
  };
}

/** Checks the credentials by reading the account. */
export async function checkTwilio(url: TwilioUrl, options: ClientOptions): Promise<string | null> {
  const client = openClient(new URL(url.endpoint).origin, options);
  try {
    const headers = { authorization: authorizationOf(url) };
    const path = `${pathOf(url)}.json`;
    const result = readReply(await client.request({ method: 'GET', path, headers }));
    return result.kind === 'sent' ? null : result.reason;
  } finally {
    await client.close();
  }
}

const pathOf = ({ accountSid, endpoint }: TwilioUrl): string =>
  `${new URL(endpoint).pathname.replace(/\/$/, '')}/2010-04-01/Accounts/${accountSid}`;

const authorizationOf = ({ accountSid, authToken }: TwilioUrl): string =>
  `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`;

/**
 * Returns the result of a response. Codes that are not in the table are final, unless the status is
 * temporary.
 */
function readReply(reply: HttpResult): ProviderResult {
  if (reply.kind !== 'response') return withoutCode(provider, reply);
  const { status, retryAfterMs: afterMs } = reply;
  const { code: number, sid } = parseReply(replyShape, reply) ?? {};
  if (status >= 200 && status < 300 && sid !== undefined) return { kind: 'sent', providerId: sid };
  if (number === undefined) return withoutCode(provider, reply);
  const code = String(number);
  const unknown = isTemporaryStatus(status) ? 'smsUnavailable' : 'smsUnknown';
  return resultOf(known(code) ?? unknown, { provider, code, afterMs });
}
