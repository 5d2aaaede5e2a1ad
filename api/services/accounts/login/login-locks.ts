import { createHash } from 'node:crypto';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  countLoginFailure,
  deleteLoginLock,
  isLoginLocked,
  readLoginLock,
} from '../../../../shared/db/tables/sign-in.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { User } from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';

/** More than 6 failures within 15 minutes lock an account (protocol/users.md#account-lock). */
const lockRule = { maxFailures: 6, windowMs: 15 * 60_000 } as const;

/** Identifier of a user, as the caller submitted it. */
export interface Identifier {
  kind: 'username' | 'email' | 'mobilePhoneNumber';
  value: string;
}

/** Subject of a lock: the submitted identifier, and its user if known. */
export interface LockTarget {
  user: Pick<User, 'objectId'> | undefined;
  submitted: Identifier;
}

/** Returns the digest that failures are counted under: one for all identifiers of a user (protocol/users.md#account-lock). */
function digestOf({ user, submitted }: LockTarget): Buffer {
  const [kind, value] = user ? ['user', user.objectId] : [submitted.kind, normalized(submitted.value)];
  return createHash('sha256').update(kind).update('\0').update(value).digest();
}

const digestOfUser = (user: User): Buffer =>
  digestOf({ user, submitted: { kind: 'username', value: user.username } });

/** Normalizes the spelling of an identifier without a user. */
const normalized = (text: string): string => text.normalize('NFKC').trim().toLowerCase();

/**
 * Locks users and unknown identifiers by the same rule, so that a lock does not reveal which users exist
 * (protocol/known-problems.md#login-locks). Callers check the lock before and after the work. One statement counts a
 * failure and locks, so concurrent guesses are serialized, and a match counts only while fewer than seven have failed.
 */
export class LoginLocks {
  readonly #deps: Pick<ApiDeps, 'db' | 'clock'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'clock'>) {
    this.#deps = deps;
  }

  /** Throws 219 while the target is locked. */
  async requireUnlocked({ appId }: App, target: LockTarget): Promise<void> {
    const at = { identifier: digestOf(target), now: this.#now() };
    if (await isLoginLocked(this.#deps.db, appId, at)) throw refuse('accountLocked');
  }

  /** Counts a failed attempt. Throws 219 when the target is locked now. */
  async countFailure({ appId }: App, target: LockTarget): Promise<void> {
    const at = { identifier: digestOf(target), now: this.#now(), rule: lockRule };
    if (await countLoginFailure(this.#deps.db, appId, at)) throw refuse('accountLocked');
  }

  /** Returns the failures of a user within the window, and the end of its lock. */
  stateOf({ appId }: App, user: User): Promise<{ failures: number; lockedUntil: Date | null }> {
    const now = this.#now();
    const since = new Date(now.getTime() - lockRule.windowMs);
    return readLoginLock(this.#deps.db, appId, { identifier: digestOfUser(user), now, since });
  }

  /** Ends the lock of a user within the caller's transaction. */
  clear(tx: Handle, { appId }: App, user: User): Promise<void> {
    return deleteLoginLock(tx, appId, digestOfUser(user));
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}
