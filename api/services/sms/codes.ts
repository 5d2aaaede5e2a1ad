import { randomInt, randomUUID } from 'node:crypto';
import { equalInConstantTime } from '../../../shared/crypto.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  type CodeKey,
  countAttempt,
  putCode,
  selectCodesRequestedFrom,
  spendCode,
} from '../../../shared/db/tables/sign-in.ts';
import { countConversion, takeBudget } from '../../../shared/db/tables/sms.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { type Phone, parsePhone } from '../../../shared/domain/messages/phone.ts';
import {
  maxCodeAttempts,
  numberlessCode,
  pumping,
  type SmsType,
} from '../../../shared/domain/messages/sms.ts';
import type { ApiDeps } from '../deps.ts';
import { ipAddressKey } from './budgets.ts';

/** Scope of a code: the purpose, number and account that it is valid for. */
export interface CodeScope {
  appId: string;
  purpose: Exclude<SmsType, 'notification'>;
  phone: Phone;
  /** The only account that may use the code. If absent, any caller with the code may use it. */
  subject?: string | undefined;
}

/** Code that matched. The caller must still call `spend`. */
export interface CheckedCode {
  scope: CodeScope;
  id: string;
}

/** Where to search for a code that is submitted without its number. */
export interface NumberlessCode {
  appId: string;
  purpose: CodeScope['purpose'];
  ipAddress: string;
}

const codePattern = /^\d{6}$/;

/**
 * Creates, checks and spends six-digit codes (protocol/codes.md#code-rules). A code is stored as an
 * HMAC, allows five tries and can be spent once.
 */
export class VerificationCodes {
  readonly #deps: Pick<ApiDeps, 'db' | 'vault' | 'clock' | 'metrics'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'vault' | 'clock' | 'metrics'>) {
    this.#deps = deps;
  }

  /**
   * Creates a code as part of `tx`. The previous code of the scope becomes invalid. `ipAddress` is
   * the caller's address.
   */
  async issue(
    tx: Handle,
    scope: CodeScope,
    { expiresAt, ipAddress }: { expiresAt: Date; ipAddress: string },
  ): Promise<string> {
    const code = String(randomInt(1_000_000)).padStart(6, '0');
    const id = randomUUID();
    const key = keyOf(scope);
    const digest = this.#deps.vault.derive(derivationContext(key, id, code));
    await putCode(tx, {
      ...key,
      id,
      digest,
      expiresAt,
      requestedFrom: ipAddressKey(this.#deps, ipAddress),
    });
    return code;
  }

  /**
   * Counts a try and compares the code. Throws invalidSmsCode (603) for any invalid code, without
   * the cause. The caller spends the code in the transaction that uses it.
   */
  async check(scope: CodeScope, code: unknown): Promise<CheckedCode> {
    const { db, vault, clock, metrics } = this.#deps;
    const key = keyOf(scope);
    const text = typeof code === 'string' && codePattern.test(code) ? code : undefined;
    const stored =
      text === undefined
        ? undefined
        : await countAttempt(db, key, { maxAttempts: maxCodeAttempts, now: new Date(clock.now()) });
    const isMatch =
      stored !== undefined &&
      vault
        .derivedBy(derivationContext(key, stored.id, text ?? ''))
        .map((digest) => equalInConstantTime(digest, stored.digest))
        .includes(true);
    if (!stored || !isMatch) {
      metrics.smsVerifications.inc({ app: scope.appId, outcome: 'wrong' });
      throw refuse('invalidSmsCode');
    }
    return { scope, id: stored.id };
  }

  /**
   * Finds the phone number of a code that a caller submits without the number. Used by
   * resetPasswordBySmsCode and verifyMobilePhone (protocol/codes.md#codes-without-a-number).
   * Searches only the codes that the same network address requested, so that nobody can guess among
   * all codes of an app. Throws error 603 if no code or two codes match, or after too many tries.
   */
  async findNumber({ appId, purpose, ipAddress }: NumberlessCode, code: unknown): Promise<Phone> {
    const { db, vault, clock } = this.#deps;
    const requestedFrom = ipAddressKey(this.#deps, ipAddress);
    const now = new Date(clock.now());
    const { tries: limit, windowMs, maxCandidates } = numberlessCode;
    const budget = { appId, scope: 'codeAlone', key: requestedFrom, limit, windowMs } as const;
    const mayTry =
      typeof code === 'string' && codePattern.test(code) && (await takeBudget(db, budget, now));
    const candidates = mayTry
      ? await selectCodesRequestedFrom(
          db,
          { appId, purpose, requestedFrom },
          { now, limit: maxCandidates },
        )
      : [];
    const matching = candidates.filter(({ number, id, digest }) =>
      vault
        .derivedBy(derivationContext({ appId, purpose, number, subject: '' }, id, String(code)))
        .some((derived) => equalInConstantTime(derived, digest)),
    );
    const phone = matching.length === 1 ? parsePhone(matching[0]?.number) : undefined;
    if (!phone) {
      this.#deps.metrics.smsVerifications.inc({ app: appId, outcome: 'wrong' });
      throw refuse('invalidSmsCode');
    }
    return phone;
  }

  /** Spends a code as part of `tx`. Throws error 603 if a concurrent call spent it first. */
  async spend(tx: Handle, { scope, id }: CheckedCode): Promise<void> {
    if (!(await spendCode(tx, keyOf(scope), id))) throw refuse('invalidSmsCode');
    const bucket = new Date(
      Math.floor(this.#deps.clock.now() / pumping.bucketMs) * pumping.bucketMs,
    );
    await countConversion(
      tx,
      { appId: scope.appId, prefix: scope.phone.callingCode },
      'used',
      bucket,
    );
    this.#deps.metrics.smsVerifications.inc({ app: scope.appId, outcome: 'right' });
  }
}

const keyOf = ({ appId, purpose, phone, subject = '' }: CodeScope): CodeKey => ({
  appId,
  purpose,
  number: phone.e164,
  subject,
});

const derivationContext = (
  { appId, purpose, number, subject }: CodeKey,
  id: string,
  code: string,
) => `sms code ${appId} ${purpose} ${number} ${subject} ${id} ${code}`;
