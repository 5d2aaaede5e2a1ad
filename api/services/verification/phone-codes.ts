import { findUser } from '../../../shared/db/tables/users.ts';
import { type ErrorName, refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { parsePhone } from '../../../shared/domain/messages/phone.ts';
import { codeTtl } from '../../../shared/domain/messages/sms.ts';
import type { User } from '../../../shared/domain/users/user.ts';
import type { SignUpCaller } from '../accounts/caller.ts';
import type { SessionOwner } from '../accounts/sessions/sessions.ts';
import type { ApiDeps } from '../deps.ts';
import type { SmsCaller, SmsSender } from '../sms/sender.ts';
import { readTtl, requirePhone } from '../sms/sms.ts';

/** Body of a call that requests a code. */
export interface CodeRequest {
  mobilePhoneNumber: string;
  validate_token?: string | undefined;
  ttl?: number | undefined;
}

/**
 * Condition on the account of a number, and the error if the account does not meet it. Without
 * `refusal` there is no error.
 */
interface Requirement {
  isMet: (user: User) => boolean;
  refusal?: ErrorName;
}

const isVerified = (user: User): boolean => user.mobilePhoneVerified;
const verifiedNumber: Requirement = { isMet: isVerified, refusal: 'phoneUnverified' };

/**
 * Sends codes to the phones of accounts (protocol/codes.md#phone-accounts). A number without an
 * account gets 213. An unverified number gets 215 if a verified number is required
 * (protocol/errors.md#account-failures). With the option `concealUsers`, such calls get the same
 * reply and count against the same limits, but no message is sent
 * (protocol/known-problems.md#enumeration).
 */
export class PhoneCodes {
  readonly #deps: Pick<ApiDeps, 'db'>;
  readonly #sender: SmsSender;

  constructor(deps: Pick<ApiDeps, 'db'>, sender: SmsSender) {
    this.#deps = deps;
    this.#sender = sender;
  }

  /** Sends a login code to a verified number. Throws as `SmsSender.send`, 127, 212, 213, 215. */
  requestLogin(caller: SmsCaller, request: CodeRequest): Promise<void> {
    return this.#request(caller, 'login', request, verifiedNumber);
  }

  /** Sends a code that verifies the number of an account, unless it is already verified. */
  requestVerification(caller: SmsCaller, request: CodeRequest): Promise<void> {
    return this.#request(caller, 'verifyPhone', request, { isMet: (user) => !isVerified(user) });
  }

  /** Sends a code that resets the password, if the number is verified. */
  requestReset(caller: SmsCaller, request: CodeRequest): Promise<void> {
    return this.#request(caller, 'resetPassword', request, verifiedNumber);
  }

  /**
   * Sends a code to the number that a user has just set, if the app's option `phoneVerification` is
   * on. Never throws: the user is already stored and can request the code later, for example with a
   * captcha.
   */
  async sendToNewNumber(caller: SignUpCaller, user: JsonObject): Promise<void> {
    const { app, isMaster, hasHookKey = false, remoteAddress } = caller;
    const phone = parsePhone(user.mobilePhoneNumber);
    if (!app.options.phoneVerification || !phone || user.mobilePhoneVerified === true) return;
    const sender = { app, isMaster: isMaster || hasHookKey, ipAddress: remoteAddress };
    const message = { phone, type: 'verifyPhone', ttlMinutes: codeTtl.default } as const;
    // The metric of messages counts the failure.
    await this.#sender.send(sender, message).catch(() => undefined);
  }

  /** Sends a code to the caller's new number. Only the caller's account can use it. */
  async requestChange(
    caller: SmsCaller,
    session: SessionOwner | undefined,
    request: CodeRequest,
  ): Promise<void> {
    // Calls with the master key have no session and therefore no account to change.
    if (!session) throw refuse('sessionNeeded');
    await this.#sender.send(caller, {
      phone: requirePhone(request.mobilePhoneNumber),
      type: 'changePhone',
      ttlMinutes: readTtl(request.ttl, codeTtl.forPhoneChange),
      subject: session.objectId,
      validateToken: request.validate_token,
    });
  }

  async #request(
    caller: SmsCaller,
    type: 'login' | 'verifyPhone' | 'resetPassword',
    request: CodeRequest,
    requirement: Requirement,
  ): Promise<void> {
    const { app } = caller;
    const phone = requirePhone(request.mobilePhoneNumber);
    const user = await findUser(this.#deps.db, app.appId, {
      key: { mobilePhoneNumber: phone.e164 },
    });
    const isMet = user !== undefined && requirement.isMet(user);
    if (!isMet && !app.options.concealUsers) {
      await this.#sender.spendCaptcha(caller, request.validate_token);
      const refusal = user ? requirement.refusal : 'phoneUnknown';
      if (refusal) throw refuse(refusal);
      // No message is sent, so no sending limit counts.
      return;
    }
    await this.#sender.send(caller, {
      phone,
      type,
      ttlMinutes: codeTtl.default,
      validateToken: request.validate_token,
      isDryRun: !isMet,
    });
  }
}
