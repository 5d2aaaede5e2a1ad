import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { type Phone, parsePhone } from '../../../shared/domain/messages/phone.ts';
import { codeTtl } from '../../../shared/domain/messages/sms.ts';
import { CaptchaService } from '../captchas/captchas.ts';
import type { ClientStorage } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import type { ReadAudit } from '../operator/audit/audit.ts';
import { PumpingGuard } from './budgets.ts';
import { VerificationCodes } from './codes.ts';
import { type SmsCaller, SmsSender } from './sender.ts';
import { SmsTemplateService } from './templates.ts';

/** Validated body of requestSmsCode. Its other members are values for a custom template. */
interface SmsCodeRequest {
  mobilePhoneNumber?: unknown;
  smsType?: 'sms' | 'voice' | undefined;
  ttl?: number | undefined;
  name?: string | undefined;
  op?: string | undefined;
  template?: string | undefined;
  sign?: string | undefined;
  validate_token?: string | undefined;
}

/** The general code service, independent of accounts (protocol/codes.md#general-code-service). */
class SmsService {
  readonly #deps: ApiDeps;
  readonly #sender: SmsSender;
  readonly #codes: VerificationCodes;

  constructor(deps: ApiDeps, { sender, codes }: { sender: SmsSender; codes: VerificationCodes }) {
    this.#deps = deps;
    this.#sender = sender;
    this.#codes = codes;
  }

  /**
   * Sends a code or a notification. Throws error 119 if the service is disabled, error 212 if the
   * number is missing, and as `SmsSender.send`.
   */
  async request(caller: SmsCaller, request: SmsCodeRequest, body: JsonObject): Promise<void> {
    requireGeneralSms(caller.app);
    const phone = requirePhone(request.mobilePhoneNumber);
    await this.#sender.send(caller, {
      phone,
      type: 'general',
      ttlMinutes: readTtl(request.ttl, codeTtl.default),
      isVoice: request.smsType === 'voice',
      validateToken: request.validate_token,
      name: request.name,
      op: request.op,
      sign: request.sign,
      template:
        request.template === undefined ? undefined : { name: request.template, values: body },
    });
  }

  /**
   * Checks a code of the general service and marks it as used. Throws error 603 if the code is
   * wrong, expired or used. Also throws errors 119, 127 and 212.
   */
  async verify(app: App, code: string, mobilePhoneNumber: unknown): Promise<void> {
    requireGeneralSms(app);
    const phone = requirePhone(mobilePhoneNumber);
    const checked = await this.#codes.check({ appId: app.appId, purpose: 'general', phone }, code);
    await this.#deps.db.transaction((tx) => this.#codes.spend(tx, checked));
  }
}

function requireGeneralSms(app: App): void {
  if (!app.options.generalSms) throw refuse('notForClients');
}

/** Parses a phone number. Throws error 212 if it is missing, error 127 if it is invalid. */
export function requirePhone(value: unknown): Phone {
  if (value === undefined || value === null || value === '') throw refuse('phoneMissing');
  const phone = parsePhone(value);
  if (!phone) throw refuse('invalidPhone');
  return phone;
}

/**
 * Returns the validity of a code in minutes. Throws error 1 if `ttl` exceeds 30 minutes
 * (protocol/codes.md#validity).
 */
export function readTtl(ttl: number | undefined, defaultTtl: number): number {
  if (ttl === undefined) return defaultTtl;
  if (ttl < 1 || ttl > codeTtl.max)
    throw refuse('invalidParameter', `ttl: expected 1 to ${codeTtl.max} minutes`);
  return ttl;
}

/** Creates the services of codes, messages and captchas, which depend on each other. */
export function createMessaging(
  deps: ApiDeps,
  clients: { storage: ClientStorage; reads: ReadAudit },
) {
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
