import type { Handle } from '../../../shared/db/pool.ts';
import {
  defaultSignature,
  findActiveTemplate,
  findSignature,
  findTemplate,
  type TemplateText,
} from '../../../shared/db/tables/sms.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { isDomesticPhone, type Phone } from '../../../shared/domain/messages/phone.ts';
import type { SendKind, SmsType } from '../../../shared/domain/messages/sms.ts';
import { defaultTemplateNames } from '../../../shared/domain/messages/sms-provider.ts';
import { reachableName } from '../../../shared/domain/path.ts';
import { enqueueMessage } from '../../../shared/queue/message-jobs.ts';
import { parseTemplate } from '../../../shared/template.ts';
import type { CaptchaService } from '../captchas/captchas.ts';
import type { ApiDeps } from '../deps.ts';
import { chargeMessage, type PumpingGuard, spendBudgets } from './budgets.ts';
import type { VerificationCodes } from './codes.ts';
import { renderMessage, type TextParameters } from './message-text.ts';

/** Caller that requests a message. */
export interface SmsCaller {
  app: App;
  isMaster: boolean;
  ipAddress: string;
}

/** Message to send. */
export interface SmsRequest {
  phone: Phone;
  type: Exclude<SmsType, 'notification'>;
  ttlMinutes: number;
  /** The only account that may use the code. */
  subject?: string | undefined;
  isVoice?: boolean;
  /** Token of a solved captcha. It is used up if the app requires captchas. */
  validateToken?: string | undefined;
  name?: string | undefined;
  op?: string | undefined;
  sign?: string | undefined;
  template?: { name: string; values: JsonObject } | undefined;
  /**
   * If true, does the same work but sends nothing: the transaction rolls the message back. Used if
   * no account may get the message and the caller must not find that out.
   */
  isDryRun?: boolean;
}

interface Parts {
  codes: VerificationCodes;
  pumping: PumpingGuard;
  captchas: CaptchaService;
}

/** Message with its signature and template resolved. */
interface Prepared {
  parameters: TextParameters;
  type: SmsType;
  kind: SendKind;
}

/** Sends all codes and notifications by SMS (protocol/codes.md#general-code-service). */
export class SmsSender {
  readonly #deps: ApiDeps;
  readonly #parts: Parts;

  constructor(deps: ApiDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Creates a code, counts the message against all budgets and writes it to the outbox, in one
   * transaction. Throws errors 1, 127, 154, 160, 600, 601, 604, 605, 606 and 608.
   */
  async send(caller: SmsCaller, request: SmsRequest): Promise<void> {
    const { app } = caller;
    const outcome = { type: request.type as SmsType, kind: 'accepted' };
    try {
      requireReachable(app, request);
      const prepared = await this.#prepare(app, request);
      outcome.type = prepared.type;
      await this.#parts.pumping.check({ appId: app.appId, prefix: request.phone.callingCode });
      await this.#enqueue(caller, request, prepared);
    } catch (error) {
      outcome.kind = error instanceof Refusal ? error.kind : 'failed';
      throw error;
    } finally {
      this.#deps.metrics.smsRequests.inc({
        app: app.appId,
        type: outcome.type,
        outcome: outcome.kind,
      });
    }
  }

  /**
   * Uses up the captcha of a call that is refused without a message. Throws errors 608 and 1 if the
   * app requires captchas.
   */
  async spendCaptcha({ app }: SmsCaller, validateToken: string | undefined): Promise<void> {
    if (!app.options.captchaForSms) return;
    await this.#deps.db.transaction((tx) =>
      this.#parts.captchas.spend(tx, app.appId, validateToken),
    );
  }

  async #prepare(app: App, request: SmsRequest): Promise<Prepared> {
    const sign = await this.#signature(app, request.sign);
    const { phone, ttlMinutes, name, op, isVoice = false } = request;
    const parameters: TextParameters = {
      app,
      phone,
      type: request.type,
      sign,
      ttlMinutes,
      name,
      op,
    };
    const found = await this.#template(app, request);
    if (!found) return { parameters, type: request.type, kind: isVoice ? 'voice' : 'verification' };
    const parsed = parseTemplate(found.active.text, { format: 'text' });
    if (!parsed.ok) throw refuse('smsTemplateFailed');
    const custom = {
      name: found.name,
      template: parsed.template,
      values: request.template?.values ?? {},
    };
    const isNotification = found.active.type === 'notification';
    if (isNotification && isVoice)
      throw refuse('invalidParameter', 'A voice call reads out a code: a notification has none.');
    return {
      parameters: { ...parameters, custom },
      type: isNotification ? 'notification' : request.type,
      kind: isNotification ? 'notification' : isVoice ? 'voice' : 'verification',
    };
  }

  /**
   * Returns the template of a message with its text in use. A message that names no template has a
   * default template or none (protocol/codes.md#templates). Throws errors 604 and 605 for a named
   * template that does not exist or has no approved text.
   */
  async #template(
    { appId }: App,
    { phone, template }: SmsRequest,
  ): Promise<{ name: string; active: TemplateText } | undefined> {
    const { db } = this.#deps;
    const found = await (template === undefined
      ? findActiveTemplate(db, appId, defaultTemplateNames(isDomesticPhone(phone)))
      : findTemplate(db, appId, reachableName(template.name)));
    if (found?.active) return { name: found.name, active: found.active };
    if (template === undefined) return undefined;
    throw refuse(found ? 'smsTemplateNotVerified' : 'smsTemplateNotFound');
  }

  async #signature(app: App, name: string | undefined): Promise<string> {
    const { db } = this.#deps;
    if (name === undefined)
      return (await defaultSignature(db, app.appId, reachableName(app.name))) ?? refuseSignature();
    const signature = await findSignature(db, app.appId, reachableName(name));
    return signature?.isApproved ? signature.name : refuseSignature();
  }

  async #enqueue(caller: SmsCaller, request: SmsRequest, prepared: Prepared): Promise<void> {
    const { app, isMaster, ipAddress } = caller;
    const { parameters, kind } = prepared;
    const { phone, isDryRun = false } = request;
    await this.#deps.db.transaction(async (tx) => {
      if (app.options.captchaForSms)
        await this.#parts.captchas.spend(tx, app.appId, request.validateToken);
      await spendBudgets(this.#deps, tx, {
        app,
        phone,
        kind,
        sign: parameters.sign,
        ipAddress: isMaster ? undefined : ipAddress,
      });
      // A dry run takes as long as a real message and fails for the same reasons.
      if (isDryRun) await tx.query('SAVEPOINT dry_run');
      await chargeMessage(this.#deps, tx, { app, phone });
      await this.#write(tx, caller, request, prepared);
      if (isDryRun) await tx.query('ROLLBACK TO SAVEPOINT dry_run');
    });
  }

  async #write(
    tx: Handle,
    { app: { appId }, ipAddress }: SmsCaller,
    { phone, subject, ttlMinutes }: SmsRequest,
    { parameters, type, kind }: Prepared,
  ): Promise<void> {
    const expiresAt = new Date(this.#deps.clock.now() + ttlMinutes * 60_000);
    let code: string | undefined;
    if (type !== 'notification') {
      const scope = { appId, purpose: type, phone, subject };
      code = await this.#parts.codes.issue(tx, scope, { expiresAt, ipAddress });
      await this.#parts.pumping.countSent(tx, { appId, prefix: phone.callingCode });
    }
    const { text, variables } = renderMessage(parameters, code);
    const isVoice = kind === 'voice';
    await enqueueMessage(this.#deps, tx, appId, {
      kind: 'sms',
      to: phone.e164,
      type: isVoice ? 'voice' : type,
      text: isVoice ? (code ?? '') : text,
      code,
      sms: { isVoice, sign: parameters.sign, template: parameters.custom?.name, variables },
      // A notification has no code and expires after the outbox's default time.
      ...(code === undefined ? {} : { expiresAt }),
    });
  }
}

function refuseSignature(): never {
  throw refuse('invalidSmsSignature');
}

/**
 * Throws error 1 if the app does not allow the country, or for a voice code outside the home region
 * (protocol/codes.md#voice-codes). Throws error 127 if the number cannot receive the message.
 */
function requireReachable(app: App, { phone, isVoice = false }: SmsRequest): void {
  const { smsCountries } = app.options;
  if (smsCountries !== null && !smsCountries.includes(phone.country ?? ''))
    throw refuse(
      'invalidParameter',
      'Messages to this country are not allowed (option smsCountries).',
    );
  if (isVoice && (app.edition !== 'home' || phone.callingCode !== '+86'))
    throw refuse('invalidParameter', 'Voice codes are not available outside the home region.');
  if (isVoice ? !phone.can.voice : !phone.can.sms) throw refuse('invalidPhone');
}
