import type { Handle } from '../../../shared/db/pool.ts';
import {
  defaultSignature,
  findSignature,
  findTemplate,
} from '../../../shared/db/tables/messages/sms-texts.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { Phone } from '../../../shared/domain/messages/phone.ts';
import type { SendKind, SmsType } from '../../../shared/domain/messages/sms.ts';
import { parseTemplate } from '../../../shared/template.ts';
import type { CaptchaService } from '../captchas/captchas.ts';
import type { ApiDeps } from '../deps.ts';
import { postMessage } from '../messages/post-message.ts';
import { chargeMessage, spendBudgets } from './budgets.ts';
import type { VerificationCodes } from './codes.ts';
import { renderMessage, type TextParameters } from './message-text.ts';
import type { PumpingGuard } from './pumping.ts';

/** Who asks for a message. */
export interface SmsCaller {
  app: App;
  isMaster: boolean;
  ipAddress: string;
}

export interface SmsRequest {
  phone: Phone;
  type: Exclude<SmsType, 'notification'>;
  ttlMinutes: number;
  /** Account that alone may use the code. */
  subject?: string | undefined;
  isVoice?: boolean;
  /** As sent: spent when the app protects its messages by captchas. */
  validateToken?: string | undefined;
  name?: string | undefined;
  op?: string | undefined;
  sign?: string | undefined;
  template?: { name: string; values: JsonObject } | undefined;
  /** There is nobody to send it to, and the caller must not learn of it: all is done, and what it wrote taken back. */
  isDryRun?: boolean;
}

interface Parts {
  codes: VerificationCodes;
  pumping: PumpingGuard;
  captchas: CaptchaService;
}

/** A message that may be sent, as far as its texts go. */
interface Prepared {
  wording: TextParameters;
  type: SmsType;
  kind: SendKind;
}

/** The one door through which codes and notifications leave (protocol/codes.md#general-code-service). */
export class SmsSender {
  readonly #deps: ApiDeps;
  readonly #parts: Parts;

  constructor(deps: ApiDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Makes a code, counts the message against every budget and posts it, in one transaction. Throws 1, 127, 154,
   * 160, 600, 601, 604, 605, 606 and 608.
   */
  async send(caller: SmsCaller, order: SmsRequest): Promise<void> {
    const { app } = caller;
    const outcome = { type: order.type as SmsType, kind: 'accepted' };
    try {
      requireReachable(app, order);
      const prepared = await this.#prepare(app, order);
      outcome.type = prepared.type;
      await this.#parts.pumping.check({ appId: app.appId, prefix: order.phone.callingCode });
      await this.#post(caller, order, prepared);
    } catch (error) {
      outcome.kind = error instanceof Refusal ? error.kind : 'failed';
      throw error;
    } finally {
      this.#deps.metrics.smsRequests.inc({ app: app.appId, type: outcome.type, outcome: outcome.kind });
    }
  }

  /** What a call for a message costs that is answered without one. Throws 608 and 1 where the app wants captchas. */
  async spendCaptcha({ app }: SmsCaller, validateToken: string | undefined): Promise<void> {
    if (!app.options.captchaForSms) return;
    await this.#deps.db.transaction((tx) => this.#parts.captchas.spend(tx, app.appId, validateToken));
  }

  async #prepare(app: App, order: SmsRequest): Promise<Prepared> {
    const sign = await this.#sign(app, order.sign);
    const { phone, ttlMinutes, name, op, isVoice = false } = order;
    const wording: TextParameters = { app, phone, type: order.type, sign, ttlMinutes, name, op };
    if (!order.template) return { wording, type: order.type, kind: isVoice ? 'voice' : 'verification' };
    const found = await findTemplate(this.#deps.db, app.appId, order.template.name);
    if (!found) throw refuse('smsTemplateNotFound');
    if (!found.active) throw refuse('smsTemplateNotVerified');
    const reading = parseTemplate(found.active.text, { format: 'text' });
    if (!reading.ok) throw refuse('smsTemplateFailed');
    const custom = { name: found.name, template: reading.template, values: order.template.values };
    const isNotification = found.active.type === 'notification';
    if (isNotification && isVoice)
      throw refuse('invalidParameter', 'A voice call reads out a code: a notification has none.');
    return {
      wording: { ...wording, custom },
      type: isNotification ? 'notification' : order.type,
      kind: isNotification ? 'notification' : isVoice ? 'voice' : 'verification',
    };
  }

  async #sign(app: App, name: string | undefined): Promise<string> {
    const { db } = this.#deps;
    if (name === undefined) return (await defaultSignature(db, app.appId, app.name)) ?? unsigned();
    const signature = await findSignature(db, app.appId, name);
    return signature?.isApproved ? signature.name : unsigned();
  }

  async #post(caller: SmsCaller, order: SmsRequest, prepared: Prepared): Promise<void> {
    const { app, isMaster, ipAddress } = caller;
    const { wording, kind } = prepared;
    const { phone, isDryRun = false } = order;
    await this.#deps.db.transaction(async (tx) => {
      if (app.options.captchaForSms) await this.#parts.captchas.spend(tx, app.appId, order.validateToken);
      const spender = isMaster ? undefined : ipAddress;
      await spendBudgets(this.#deps, tx, { app, phone, kind, sign: wording.sign, ipAddress: spender });
      // For nobody the same is done, for its time and its refusals only, and taken back.
      if (isDryRun) await tx.query('SAVEPOINT dry_run');
      await chargeMessage(this.#deps, tx, { app, phone });
      await this.#write(tx, caller, order, prepared);
      if (isDryRun) await tx.query('ROLLBACK TO SAVEPOINT dry_run');
    });
  }

  async #write(
    tx: Handle,
    { app: { appId }, ipAddress }: SmsCaller,
    { phone, subject, ttlMinutes }: SmsRequest,
    { wording, type, kind }: Prepared,
  ): Promise<void> {
    const expiresAt = new Date(this.#deps.clock.now() + ttlMinutes * 60_000);
    let code: string | undefined;
    if (type !== 'notification') {
      const use = { appId, purpose: type, phone, subject };
      code = await this.#parts.codes.issue(tx, use, { expiresAt, ipAddress });
      await this.#parts.pumping.countSent(tx, { appId, prefix: phone.callingCode });
    }
    const { text, variables } = renderMessage(wording, code);
    const isVoice = kind === 'voice';
    await postMessage(this.#deps, tx, appId, {
      kind: 'sms',
      to: phone.e164,
      type: isVoice ? 'voice' : type,
      text: isVoice ? (code ?? '') : text,
      code,
      sms: { isVoice, sign: wording.sign, template: wording.custom?.name, variables },
      // A notification is of use for longer than a code.
      ...(code === undefined ? {} : { expiresAt }),
    });
  }
}

function unsigned(): never {
  throw refuse('invalidSmsSignature');
}

/** Voice codes are for the home region (protocol/codes.md#voice-codes), texts for what can show them. */
function requireReachable(app: App, { phone, isVoice = false }: SmsRequest): void {
  if (isVoice && (app.edition !== 'home' || phone.callingCode !== '+86'))
    throw refuse('invalidParameter', 'Voice codes are not available outside the home region.');
  if (isVoice ? !phone.can.voice : !phone.can.sms) throw refuse('invalidPhone');
}
