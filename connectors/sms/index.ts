import type { Clock } from '../../shared/clock.ts';
import type { SmsProviderUrl } from '../../shared/domain/messages/sms-provider.ts';
import { defaultHttpTiming, type HttpTiming } from '../../shared/http/client.ts';
import type { Provider, SmsMessage } from '../provider.ts';
import { checkAliyun, openAliyun } from './aliyun.ts';
import { checkTencent, openTencent } from './tencent.ts';
import { checkTwilio, openTwilio } from './twilio.ts';
import { openSmsWebhook } from './webhook.ts';

/** What a provider of SMS needs in addition to its URL. */
export interface SmsProviderOptions {
  /** Signing keys of the webhook, newest first. */
  keys: string[];
  /** PUBLIC_URL, for the receipts of Twilio. */
  publicUrl: string;
  clock: Clock;
  timing?: HttpTiming;
}

/** Opens the provider of `SMS_URL` (operate/mail-and-sms.md#sms-providers). */
export function openSms(url: SmsProviderUrl, options: SmsProviderOptions): Provider<SmsMessage> {
  const { keys, publicUrl, clock, timing = defaultHttpTiming } = options;
  switch (url.provider) {
    case 'aliyun':
      return openAliyun(url, { clock, timing });
    case 'tencent':
      return openTencent(url, { clock, timing });
    case 'twilio':
      return openTwilio(url, { clock, timing, publicUrl });
    case 'webhook':
      return openSmsWebhook({ url: url.url, keys, clock, timing });
  }
}

/**
 * Checks the credentials by a call that sends nothing and costs nothing. Returns null if the
 * provider accepts them, otherwise the stored reason.
 */
export function checkSms(
  url: Exclude<SmsProviderUrl, { provider: 'webhook' }>,
  options: { clock: Clock; timing: HttpTiming },
): Promise<string | null> {
  switch (url.provider) {
    case 'aliyun':
      return checkAliyun(url, options);
    case 'tencent':
      return checkTencent(url, options);
    case 'twilio':
      return checkTwilio(url, options);
  }
}
