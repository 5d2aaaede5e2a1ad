import { CaptchaService } from '../captchas/captchas.ts';
import type { Means } from '../means.ts';
import { CodeBook } from './codes.ts';
import { PumpingGuard } from './pumping.ts';
import { SmsSender } from './sender.ts';
import { SmsService } from './sms.ts';
import { SmsTextService } from './texts.ts';

/** Codes, messages and captchas: they use one another, so they are made together. */
export function createMessaging(means: Means) {
  const codes = new CodeBook(means);
  const pumping = new PumpingGuard(means);
  const captchas = new CaptchaService(means);
  const sender = new SmsSender(means, { codes, pumping, captchas });
  return {
    codes,
    pumping,
    captchas,
    sender,
    sms: new SmsService(means, { sender, codes }),
    smsTexts: new SmsTextService(means),
  };
}

export type Messaging = ReturnType<typeof createMessaging>;
