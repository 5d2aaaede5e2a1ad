import { randomInt, randomUUID } from 'node:crypto';
import { equalInConstantTime } from '../../../shared/crypto.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { takeBudget } from '../../../shared/db/tables/messages/send-budgets.ts';
import { countConversion } from '../../../shared/db/tables/messages/sms-conversion.ts';
import {
  type CodeKey,
  countAttempt,
  putCode,
  selectCodesAskedFrom,
  spendCode,
} from '../../../shared/db/tables/users/verification-codes.ts';
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

/** What a code is for and whose it is. */
export interface CodeScope {
  appId: string;
  purpose: Exclude<SmsType, 'notification'>;
  phone: Phone;
  /** Account that alone may use it; absent: whoever holds the phone. */
  subject?: string | undefined;
}

/** A code that was right when it was looked at: it counts only once it is spent. */
export interface CheckedCode {
  scope: CodeScope;
  id: string;
}

/** Which codes may be meant by one that comes without its number. */
export interface NumberlessCode {
  appId: string;
  purpose: CodeScope['purpose'];
  /** Network address that it comes from. */
  ipAddress: string;
}

const codePattern = /^\d{6}$/;

/** Six-digit codes (protocol/codes.md#code-rules): kept as HMACs, tried five times, spent once. */
export class VerificationCodes {
  readonly #deps: Pick<ApiDeps, 'db' | 'vault' | 'clock' | 'metrics'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'vault' | 'clock' | 'metrics'>) {
    this.#deps = deps;
  }

  /** Makes a code as part of `tx`; the one before it is void. `ipAddress` is the network address that asks. */
  async issue(
    tx: Handle,
    use: CodeScope,
    { expiresAt, ipAddress }: { expiresAt: Date; ipAddress: string },
  ): Promise<string> {
    const code = String(randomInt(1_000_000)).padStart(6, '0');
    const id = randomUUID();
    const owner = ownerOf(use);
    const digest = this.#deps.vault.derive(contextOf(owner, id, code));
    await putCode(tx, { ...owner, id, digest, expiresAt, askedFrom: ipAddressKey(this.#deps, ipAddress) });
    return code;
  }

  /**
   * Counts a try and compares. Throws 603 for a code that is wrong, expired, used, or not even one: all alike.
   * The caller spends what it gets in the transaction of what the code is for.
   */
  async check(use: CodeScope, code: unknown): Promise<CheckedCode> {
    const { db, vault, clock, metrics } = this.#deps;
    const owner = ownerOf(use);
    const text = typeof code === 'string' && codePattern.test(code) ? code : undefined;
    const found =
      text === undefined
        ? undefined
        : await countAttempt(db, owner, { maxAttempts: maxCodeAttempts, now: new Date(clock.now()) });
    const isRight =
      found !== undefined &&
      vault
        .derivedBy(contextOf(owner, found.id, text ?? ''))
        .map((digest) => equalInConstantTime(digest, found.digest))
        .includes(true);
    if (!found || !isRight) {
      metrics.smsVerifications.inc({ app: use.appId, outcome: 'wrong' });
      throw refuse('invalidSmsCode');
    }
    return { scope: use, id: found.id };
  }

  /**
   * The number that a code was sent to, for clients that send the code alone (protocol/codes.md#codes-without-a-number, resetPasswordBySmsCode
   * and verifyMobilePhone): found among the codes that the same network address asked for, so that nobody can guess at
   * the codes of a whole app. Throws 603 when none fits, or two do, or the address has tried too often.
   */
  async findNumber({ appId, purpose, ipAddress }: NumberlessCode, code: unknown): Promise<Phone> {
    const { db, vault, clock } = this.#deps;
    const askedFrom = ipAddressKey(this.#deps, ipAddress);
    const now = new Date(clock.now());
    const { tries: limit, windowMs, candidates } = numberlessCode;
    const budget = { appId, scope: 'codeAlone', key: askedFrom, limit, windowMs } as const;
    const mayTry = typeof code === 'string' && codePattern.test(code) && (await takeBudget(db, budget, now));
    const asked = mayTry
      ? await selectCodesAskedFrom(db, { appId, purpose, askedFrom }, { now, limit: candidates })
      : [];
    const fitting = asked.filter(({ number, id, digest }) =>
      vault
        .derivedBy(contextOf({ appId, purpose, number, subject: '' }, id, String(code)))
        .some((derived) => equalInConstantTime(derived, digest)),
    );
    const phone = fitting.length === 1 ? parsePhone(fitting[0]?.number) : undefined;
    if (!phone) {
      this.#deps.metrics.smsVerifications.inc({ app: appId, outcome: 'wrong' });
      throw refuse('invalidSmsCode');
    }
    return phone;
  }

  /** Throws 603 when somebody else was faster. */
  async spend(tx: Handle, { scope: use, id }: CheckedCode): Promise<void> {
    if (!(await spendCode(tx, ownerOf(use), id))) throw refuse('invalidSmsCode');
    const bucket = new Date(Math.floor(this.#deps.clock.now() / pumping.bucketMs) * pumping.bucketMs);
    await countConversion(tx, { appId: use.appId, prefix: use.phone.callingCode }, 'used', bucket);
    this.#deps.metrics.smsVerifications.inc({ app: use.appId, outcome: 'right' });
  }
}

const ownerOf = ({ appId, purpose, phone, subject = '' }: CodeScope): CodeKey => ({
  appId,
  purpose,
  number: phone.e164,
  subject,
});

const contextOf = ({ appId, purpose, number, subject }: CodeKey, id: string, code: string) =>
  `sms code ${appId} ${purpose} ${number} ${subject} ${id} ${code}`;
