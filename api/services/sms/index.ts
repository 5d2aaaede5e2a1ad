import { CaptchaService } from '../captchas/captchas.ts';
import type { ClientStorage } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import type { ReadAudit } from '../operator/audit/reads.ts';
import { VerificationCodes } from './codes.ts';
import { PumpingGuard } from './pumping.ts';
import { SmsSender } from './sender.ts';
import { SmsService } from './sms.ts';
import { SmsTemplateService } from './templates.ts';

/** Creates the services of codes, messages and captchas, which depend on one another. */
export function createMessaging(deps: ApiDeps, clients: { storage: ClientStorage; reads: ReadAudit }) {
  const codes = new VerificationCodes(deps);
  const pumping = new PumpingGuard(deps);
  const captchas = new CaptchaService(deps, clients);
  const sender = new SmsSender(deps, { codes, pumping, captchas });
  return {
    codes,
    pumping,
    captchas,
    sender,
    sms: new SmsService(deps, { sender, codes }),
    smsTexts: new SmsTemplateService(deps),
  };
}

export type Messaging = ReturnType<typeof createMessaging>;
