import { createHash } from 'node:crypto';
import { countLoginFailure, isLoginLocked } from '../../../shared/db/tables/login-locks.ts';
import type { App } from '../../../shared/domain/app.ts';
import { refuse } from '../../../shared/domain/errors.ts';
import type { Means } from '../means.ts';

/** accounts.md "Account lock": more than 6 failures within 15 minutes. */
export const lockRule = { maxFailures: 6, windowMs: 15 * 60_000 } as const;

/** What somebody submitted to say who they are, in one spelling; `user` is for those who are known already. */
export interface Identifier {
  kind: 'username' | 'email' | 'mobilePhoneNumber' | 'user';
  value: string;
}

const digestOf = ({ kind, value }: Identifier): Buffer =>
  createHash('sha256').update(kind).update('\0').update(value).digest();

/**
 * Locks by submitted identifier, whether there is such a user or not: a lock tells nobody who exists (field.md 4.1).
 * Ask before the work, and settle after it: guesses that are made at the same time are settled one by one, and a
 * right one among them counts only while fewer than seven have failed.
 */
export class LoginLocks {
  readonly #means: Pick<Means, 'db' | 'clock'>;

  constructor(means: Pick<Means, 'db' | 'clock'>) {
    this.#means = means;
  }

  /** Throws 219 while the identifier is locked. */
  async requireOpen({ appId }: App, identifier: Identifier): Promise<void> {
    const at = { identifier: digestOf(identifier), now: this.#now() };
    if (await isLoginLocked(this.#means.db, appId, at)) throw refuse('accountLocked');
  }

  /** Counts a failed attempt. Throws 219 when it was one too many, or the lock came meanwhile. */
  async fail({ appId }: App, identifier: Identifier): Promise<void> {
    const at = { identifier: digestOf(identifier), now: this.#now(), rule: lockRule };
    if (await countLoginFailure(this.#means.db, appId, at)) throw refuse('accountLocked');
  }

  #now(): Date {
    return new Date(this.#means.clock.now());
  }
}
