import { createHash } from 'node:crypto';
import { countLoginFailure, isLoginLocked } from '../../../../shared/db/tables/users/login-locks.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { User } from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';

/** protocol/users.md#account-lock: more than 6 failures within 15 minutes. */
export const lockRule = { maxFailures: 6, windowMs: 15 * 60_000 } as const;

/** What a caller submitted to name a user. */
export interface Identifier {
  kind: 'username' | 'email' | 'mobilePhoneNumber';
  value: string;
}

/** Who a guess is about: the user, where there is one, and what was submitted. */
export interface LockTarget {
  user: Pick<User, 'objectId'> | undefined;
  submitted: Identifier;
}

/** The digest under which a target's failures are counted: one for all names of a user (protocol/users.md#account-lock). */
function digestOf({ user, submitted }: LockTarget): Buffer {
  const [kind, value] = user ? ['user', user.objectId] : [submitted.kind, normalised(submitted.value)];
  return createHash('sha256').update(kind).update('\0').update(value).digest();
}

/** One form for the spellings of a name that belongs to no user. */
const normalised = (text: string): string => text.normalize('NFKC').trim().toLowerCase();

/**
 * Locks users, and names that belong to no user, by the same numbers: a lock tells nobody who exists (protocol/known-problems.md#login-locks).
 * Callers ask before the work and settle after it. One statement counts a failure and locks, so that guesses made at
 * the same time are settled one by one, and a right one among them counts only while fewer than seven have failed.
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

  /** Counts a failed attempt. Throws 219 when it was one too many, or the lock came meanwhile. */
  async countFailure({ appId }: App, target: LockTarget): Promise<void> {
    const at = { identifier: digestOf(target), now: this.#now(), rule: lockRule };
    if (await countLoginFailure(this.#deps.db, appId, at)) throw refuse('accountLocked');
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}
