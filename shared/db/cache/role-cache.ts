import type { Clock } from '../../clock.ts';
import type { Handle } from '../pool.ts';
import { findRolesOfUser, hasAnyRole } from '../tables/roles/user-roles.ts';
import { ShortCache } from './short-cache.ts';

/** Limit of cached users, each with up to a thousand role names. */
const maxCachedUsers = 2000;

/** Cache of users' roles, at most half a second old. */
export class RoleCache {
  readonly #apps: ShortCache<boolean>;
  readonly #users: ShortCache<readonly string[]>;

  constructor(db: Handle, clock: Clock, maxUsers = maxCachedUsers) {
    this.#apps = new ShortCache(clock, (appId) => hasAnyRole(db, appId));
    this.#users = new ShortCache(
      clock,
      (key) => {
        const [appId = '', userId = ''] = key.split(' ');
        return findRolesOfUser(db, appId, Number(userId));
      },
      maxUsers,
    );
  }

  /** Number of cached users. */
  get size(): number {
    return this.#users.size;
  }

  /** Returns the role names of a user; needs no query per user in an app without roles. */
  async rolesOf(appId: string, userId: number): Promise<readonly string[]> {
    return (await this.#apps.get(appId)) ? this.#users.get(`${appId} ${userId}`) : [];
  }

  /** Drops the users of an app; the process that changes its roles calls this to see the change at once. */
  forget(appId: string): void {
    this.#apps.forget(appId);
    this.#users.forgetBeginning(`${appId} `);
  }
}
