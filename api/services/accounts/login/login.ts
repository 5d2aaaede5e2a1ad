import type { Handle } from '../../../../shared/db/pool.ts';
import { findUser, replaceHash, type UserKey } from '../../../../shared/db/tables/users/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { type ErrorName, Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { readPhone } from '../../../../shared/domain/users/members.ts';
import { type User, userDocument } from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';
import type { VerificationCodes } from '../../sms/codes.ts';
import { requirePhone } from '../../sms/sms.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { UserHookCaller, UserHooks } from '../user-hooks.ts';
import type { Identifier, LoginLocks } from './login-locks.ts';

/** How somebody proves to be a user. It is asked, and takes as long, when there is no such user. */
export interface Credential {
  matches(user: User | undefined): Promise<boolean>;
  /** What a failed one is answered with. */
  refusal: ErrorName;
  /** The answer where there is no such user, unless the app conceals that; absent: `refusal`. */
  unknownUserRefusal?: ErrorName;
  /** It allows a few guesses only, however many come at once, so that a right one counts whatever failed beside it. */
  hasGuessLimit?: boolean;
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** POST /1.1/login (protocol/users.md#calls-for-users). */
export class LoginService {
  readonly #deps: ApiDeps;
  readonly #passwords: Passwords;
  readonly #sessions: Sessions;
  readonly #locks: LoginLocks;
  readonly #codes: VerificationCodes;
  readonly #hooked: UserHooks;

  constructor(
    deps: ApiDeps,
    parts: {
      passwords: Passwords;
      sessions: Sessions;
      locks: LoginLocks;
      codes: VerificationCodes;
      hooked: UserHooks;
    },
  ) {
    this.#deps = deps;
    this.#passwords = parts.passwords;
    this.#sessions = parts.sessions;
    this.#locks = parts.locks;
    this.#codes = parts.codes;
    this.#hooked = parts.hooked;
  }

  /**
   * Logs in by `username`, `email` or `mobilePhoneNumber` with `password`. An unknown user is 211 (protocol/errors.md#account-failures); with
   * the option `concealUsers` it gets the answer to a wrong password. Either takes the same work, and counts towards
   * the lock. Throws 200, 125, 127, 217 without a claim, 201 or 218 without a password, 210 when they do not fit, 216 by the app's option, 219 when locked, 401 by the hook of its function host, 429 when too many wait. With
   * `mobilePhoneNumber` and `smsCode` in place of a password: 212 without a number, 603 when they do not fit.
   */
  async login(caller: UserHookCaller, body: JsonObject): Promise<JsonObject> {
    const { app } = caller;
    if (isGiven(body.smsCode) && !isGiven(body.password)) return this.#loginByCode(caller, body);
    const claim = readIdentifier(body);
    const { password } = body;
    if (!isGiven(password) || password === '') throw refuse('passwordMissing');
    if (typeof password !== 'string') throw refuse('invalidPassword');
    return this.signIn(caller, claim, {
      matches: (user) => this.#matchesPassword(app, { user, password }),
      refusal: 'passwordMismatch',
      unknownUserRefusal: 'userNotFound',
    });
  }

  /**
   * Logs in whoever proves the claim; the reply is the whole user. Throws 216, 219, 401 by `onLogin` and the proof's
   * refusal.
   */
  async signIn(caller: UserHookCaller, claim: Identifier, proof: Credential): Promise<JsonObject> {
    const { app } = caller;
    const user = await this.#find(app, claim);
    const target = { user, submitted: claim };
    await this.#locks.requireUnlocked(app, target);
    if (!(await proof.matches(user)) || !user) {
      await this.#locks.countFailure(app, target);
      const isToldApart = !user && !app.options.concealUsers;
      throw refuse((isToldApart ? proof.unknownUserRefusal : undefined) ?? proof.refusal);
    }
    // Failures of the same moment may have locked it while we looked.
    if (!proof.hasGuessLimit) await this.#locks.requireUnlocked(app, target);
    const document = await this.completeLogin(app, user);
    await this.#hooked.onLogin(caller, document);
    // protocol/users.md#user-fields: mobilePhone is there where a number was logged in with.
    return claim.kind === 'mobilePhoneNumber'
      ? { ...document, mobilePhone: user.mobilePhoneNumber }
      : document;
  }

  #loginByCode(caller: UserHookCaller, { mobilePhoneNumber, smsCode }: JsonObject): Promise<JsonObject> {
    const { app } = caller;
    const phone = requirePhone(mobilePhoneNumber);
    const use = { appId: app.appId, purpose: 'login', phone } as const;
    const holds = async (user: User | undefined) => {
      const checked = await this.#codes.check(use, smsCode);
      // A number that was taken from this account and given to another is another's.
      if (!user?.mobilePhoneVerified) return false;
      await this.#deps.db.transaction((tx) => this.#codes.spend(tx, checked));
      return true;
    };
    const claim = { kind: 'mobilePhoneNumber', value: phone.e164 } as const;
    return this.signIn(caller, claim, {
      matches: (user) => falseOnInvalidCode(holds(user)),
      refusal: 'invalidSmsCode',
      hasGuessLimit: true,
    });
  }

  /** What a user who has proven itself gets. Throws 216 when the app lets in nobody with an unverified address. */
  async completeLogin(app: App, user: User, db: Handle = this.#deps.db): Promise<JsonObject> {
    if (app.options.forbidUnverifiedEmailLogin && user.email !== null && user.emailVerified === false)
      throw refuse('emailUnverified');
    const sessionToken = await this.#sessions.currentToken(db, app.appId, user);
    return { ...userDocument(user, { isOwn: true }), sessionToken };
  }

  /** Whether a password is a user's; a hash of another form is replaced when it is. */
  async #matchesPassword(
    { appId }: App,
    { user, password }: { user: User | undefined; password: string },
  ): Promise<boolean> {
    const hash = user?.passwordHash ?? null;
    const { isMatch: isRight, needsRehash: isOutdated } = await this.#passwords.verify(appId, password, hash);
    if (isRight && isOutdated && user && hash !== null) {
      const to = await this.#passwords.hash(appId, password);
      await replaceHash(this.#deps.db, appId, { id: user.id, from: hash, to });
    }
    return isRight;
  }

  /** A text that no column could hold belongs to nobody. */
  async #find({ appId }: App, { kind, value }: Identifier): Promise<User | undefined> {
    if (value.length > maxClaimLength || value.includes('\0') || !value.isWellFormed()) return undefined;
    const key: UserKey = {
      username: { username: value },
      email: { email: value },
      mobilePhoneNumber: { mobilePhoneNumber: value },
    }[kind];
    return findUser(this.#deps.db, appId, { key });
  }
}

const maxClaimLength = 255;

async function falseOnInvalidCode(proof: Promise<boolean>): Promise<boolean> {
  try {
    return await proof;
  } catch (error) {
    if (error instanceof Refusal && error.kind === 'invalidSmsCode') return false;
    throw error;
  }
}

/** Only texts claim anything: an operator where a name belongs is refused (protocol/known-problems.md#operator-injection). */
function readIdentifier({ username, email, mobilePhoneNumber }: JsonObject): Identifier {
  if (isGiven(username)) {
    if (username === '') throw refuse('usernameMissing');
    if (typeof username !== 'string') throw refuse('invalidUsername');
    return { kind: 'username', value: username };
  }
  if (isGiven(email)) {
    if (typeof email !== 'string' || email === '') throw refuse('invalidEmail');
    return { kind: 'email', value: email };
  }
  if (!isGiven(mobilePhoneNumber)) throw refuse('usernameMissing');
  return { kind: 'mobilePhoneNumber', value: readPhone(mobilePhoneNumber) };
}
