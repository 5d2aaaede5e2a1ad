import { createHash } from 'node:crypto';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  countLoginFailure,
  deleteLoginLock,
  isLoginLocked,
  readLoginLock,
} from '../../../../shared/db/tables/sign-in.ts';
import { findUser, replaceHash, type UserKey } from '../../../../shared/db/tables/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { type ErrorName, Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { readPhone, type User, userDocument } from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';
import type { VerificationCodes } from '../../sms/codes.ts';
import { requirePhone } from '../../sms/sms.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { UserHookCaller, UserHooks } from '../user-hooks.ts';

/** More than 6 failures within 15 minutes lock an account (protocol/users.md#account-lock). */
const lockRule = { maxFailures: 6, windowMs: 15 * 60_000 } as const;

/** Identifier of a user, as the caller submitted it. */
interface Identifier {
  kind: 'username' | 'email' | 'mobilePhoneNumber';
  value: string;
}

/** Subject of a lock: the submitted identifier, and its user if the user exists. */
export interface LockTarget {
  user: Pick<User, 'objectId'> | undefined;
  submitted: Identifier;
}

/**
 * Returns the digest under which failures are counted. All identifiers of a user share one digest
 * (protocol/users.md#account-lock).
 */
function digestOf({ user, submitted }: LockTarget): Buffer {
  const [kind, value] = user
    ? ['user', user.objectId]
    : [submitted.kind, normalized(submitted.value)];
  return createHash('sha256').update(kind).update('\0').update(value).digest();
}

const digestOfUser = (user: User): Buffer =>
  digestOf({ user, submitted: { kind: 'username', value: user.username } });

/**
 * Returns all digests under which failures of a user may be counted: also those of the user's name,
 * address and number from before the user existed.
 */
export const lockDigestsOf = (user: User): Buffer[] => [
  digestOfUser(user),
  ...(['username', 'email', 'mobilePhoneNumber'] as const).flatMap((kind) => {
    const value = user[kind];
    return value === null ? [] : [digestOf({ user: undefined, submitted: { kind, value } })];
  }),
];

/** Normalizes an identifier without a user, so that spelling variants share one lock. */
const normalized = (text: string): string => text.normalize('NFKC').trim().toLowerCase();

/**
 * Locks users and unknown identifiers by the same rule, so that a lock does not reveal which users
 * exist (protocol/known-problems.md#login-locks). Callers check the lock before and after they
 * check the credential. One statement counts a failure and sets the lock, so concurrent guesses run
 * one after another. A match counts only if fewer than seven guesses have failed.
 */
export class LoginLocks {
  readonly #deps: Pick<ApiDeps, 'db' | 'clock'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'clock'>) {
    this.#deps = deps;
  }

  /** Throws error 219 if the target is locked. */
  async requireUnlocked({ appId }: App, target: LockTarget): Promise<void> {
    const at = { identifier: digestOf(target), now: this.#now() };
    if (await isLoginLocked(this.#deps.db, appId, at)) throw refuse('accountLocked');
  }

  /** Counts a failed attempt. Throws error 219 if the target is now locked. */
  async countFailure({ appId }: App, target: LockTarget): Promise<void> {
    const at = { identifier: digestOf(target), now: this.#now(), rule: lockRule };
    if (await countLoginFailure(this.#deps.db, appId, at)) throw refuse('accountLocked');
  }

  /** Returns the number of a user's failures within the window, and the end of its lock. */
  stateOf({ appId }: App, user: User): Promise<{ failures: number; lockedUntil: Date | null }> {
    const now = this.#now();
    const since = new Date(now.getTime() - lockRule.windowMs);
    return readLoginLock(this.#deps.db, appId, { identifier: digestOfUser(user), now, since });
  }

  /** Ends the lock of a user, as part of `tx`. */
  clear(tx: Handle, { appId }: App, user: User): Promise<void> {
    return deleteLoginLock(tx, appId, digestOfUser(user));
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

/** Credential of a login. For an unknown user, the check must take as long as for a known user. */
interface Credential {
  matches(user: User | undefined): Promise<boolean>;
  /** Error if the credential does not match. */
  refusal: ErrorName;
  /**
   * Error if the user is unknown and the app does not conceal unknown users. If absent, `refusal`
   * is used.
   */
  unknownUserRefusal?: ErrorName;
  /**
   * True if the credential has its own limit of guesses. A match then counts even if concurrent
   * guesses locked the account.
   */
  hasGuessLimit?: boolean;
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null;

/** POST /1.1/login (protocol/users.md#calls-for-users). */
export class LoginService {
  readonly #deps: ApiDeps;
  readonly #passwords: Passwords;
  readonly #sessions: Sessions;
  readonly #locks: LoginLocks;
  readonly #codes: VerificationCodes;
  readonly #hooks: UserHooks;

  constructor(
    deps: ApiDeps,
    parts: {
      passwords: Passwords;
      sessions: Sessions;
      locks: LoginLocks;
      codes: VerificationCodes;
      hooks: UserHooks;
    },
  ) {
    this.#deps = deps;
    this.#passwords = parts.passwords;
    this.#sessions = parts.sessions;
    this.#locks = parts.locks;
    this.#codes = parts.codes;
    this.#hooks = parts.hooks;
  }

  /**
   * Logs in by `username`, `email` or `mobilePhoneNumber` with `password`, or by
   * `mobilePhoneNumber` with `smsCode`. Unknown users and wrong passwords take the same work and
   * count towards the lock. Throws:
   *
   * - 200, 125, 127 or 217 for the identifier;
   * - 201 or 218 if the password is missing or malformed, 210 if it is wrong;
   * - 211 if the user is unknown (protocol/errors.md#account-failures), or 210 with the option
   *   `concealUsers`;
   * - 215 and 216 by the app's options;
   * - 219 if the account is locked;
   * - 401 if a hook of the app refuses;
   * - 429 if too many calls wait;
   * - with `smsCode`: 212 without a number, 603 if the code is wrong.
   */
  async login(caller: UserHookCaller, body: JsonObject): Promise<JsonObject> {
    const { app } = caller;
    if (isPresent(body.smsCode) && !isPresent(body.password))
      return this.#loginByCode(caller, body);
    const identifier = readIdentifier(body);
    const { password } = body;
    if (!isPresent(password) || password === '') throw refuse('passwordMissing');
    if (typeof password !== 'string') throw refuse('invalidPassword');
    return this.signIn(caller, identifier, {
      matches: (user) => this.#matchesPassword(app, { user, password }),
      refusal: 'passwordMismatch',
      unknownUserRefusal: 'userNotFound',
    });
  }

  /**
   * Logs in the user of an identifier if the credential matches. Returns the whole user. Throws
   * errors 216, 219, 401 from `onLogin`, and the credential's refusal.
   */
  async signIn(
    caller: UserHookCaller,
    identifier: Identifier,
    credential: Credential,
  ): Promise<JsonObject> {
    const { app } = caller;
    const user = await this.#find(app, identifier);
    const target = { user, submitted: identifier };
    await this.#locks.requireUnlocked(app, target);
    if (!(await credential.matches(user)) || !user) {
      await this.#locks.countFailure(app, target);
      const revealsUnknown = !user && !app.options.concealUsers;
      throw refuse(
        (revealsUnknown ? credential.unknownUserRefusal : undefined) ?? credential.refusal,
      );
    }
    // Concurrent failures may have locked the account since the first check.
    if (!credential.hasGuessLimit) await this.#locks.requireUnlocked(app, target);
    const document = await this.completeLogin(app, user);
    await this.#hooks.onLogin(caller, document);
    // A login by number returns mobilePhone too (protocol/users.md#user-fields).
    return identifier.kind === 'mobilePhoneNumber'
      ? { ...document, mobilePhone: user.mobilePhoneNumber }
      : document;
  }

  #loginByCode(
    caller: UserHookCaller,
    { mobilePhoneNumber, smsCode }: JsonObject,
  ): Promise<JsonObject> {
    const { app } = caller;
    const phone = requirePhone(mobilePhoneNumber);
    const scope = { appId: app.appId, purpose: 'login', phone } as const;
    const spendCode = async (user: User | undefined) => {
      const checked = await this.#codes.check(scope, smsCode);
      // The number may have moved to another account in the meantime.
      if (!user?.mobilePhoneVerified) return false;
      await this.#deps.db.transaction((tx) => this.#codes.spend(tx, checked));
      return true;
    };
    const identifier = { kind: 'mobilePhoneNumber', value: phone.e164 } as const;
    return this.signIn(caller, identifier, {
      matches: (user) => falseOnInvalidCode(spendCode(user)),
      refusal: 'invalidSmsCode',
      hasGuessLimit: true,
    });
  }

  /**
   * Returns the document of an authenticated user with its token. Depending on the app's options,
   * throws error 216 if the e-mail address is unverified, and error 215 if the number is
   * unverified.
   */
  async completeLogin(app: App, user: User, db: Handle = this.#deps.db): Promise<JsonObject> {
    if (
      app.options.forbidUnverifiedEmailLogin &&
      user.email !== null &&
      user.emailVerified === false
    )
      throw refuse('emailUnverified');
    if (
      app.options.forbidUnverifiedPhoneLogin &&
      user.mobilePhoneNumber !== null &&
      !user.mobilePhoneVerified
    )
      throw refuse('phoneUnverified');
    const sessionToken = await this.#sessions.currentToken(db, app.appId, user);
    return { ...userDocument(user, { isOwn: true }), sessionToken };
  }

  /** Returns whether a password is correct. If it is, replaces an outdated hash. */
  async #matchesPassword(
    { appId }: App,
    { user, password }: { user: User | undefined; password: string },
  ): Promise<boolean> {
    const hash = user?.passwordHash ?? null;
    const { isMatch, needsRehash } = await this.#passwords.verify(appId, password, hash);
    if (isMatch && needsRehash && user && hash !== null) {
      const to = await this.#passwords.hash(appId, password);
      await replaceHash(this.#deps.db, appId, { id: user.id, from: hash, to });
    }
    return isMatch;
  }

  /** Finds the user of an identifier. Texts that the column cannot hold match no user. */
  async #find({ appId }: App, { kind, value }: Identifier): Promise<User | undefined> {
    if (value.length > maxIdentifierLength || value.includes('\0') || !value.isWellFormed())
      return undefined;
    const key: UserKey = {
      username: { username: value },
      email: { email: value },
      mobilePhoneNumber: { mobilePhoneNumber: value },
    }[kind];
    return findUser(this.#deps.db, appId, { key });
  }
}

const maxIdentifierLength = 255;

async function falseOnInvalidCode(check: Promise<boolean>): Promise<boolean> {
  try {
    return await check;
  } catch (error) {
    if (error instanceof Refusal && error.kind === 'invalidSmsCode') return false;
    throw error;
  }
}

/**
 * Reads the identifier of a body. Accepts only texts, so that operator objects are refused
 * (protocol/known-problems.md#operator-injection).
 */
function readIdentifier({ username, email, mobilePhoneNumber }: JsonObject): Identifier {
  if (isPresent(username)) {
    if (username === '') throw refuse('usernameMissing');
    if (typeof username !== 'string') throw refuse('invalidUsername');
    return { kind: 'username', value: username };
  }
  if (isPresent(email)) {
    if (typeof email !== 'string' || email === '') throw refuse('invalidEmail');
    return { kind: 'email', value: email };
  }
  if (!isPresent(mobilePhoneNumber)) throw refuse('usernameMissing');
  return { kind: 'mobilePhoneNumber', value: readPhone(mobilePhoneNumber) };
}
