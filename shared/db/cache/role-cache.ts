import type { Clock } from '../../clock.ts';
import type { Handle } from '../pool.ts';
import { findRolesOfUser, hasAnyRole } from '../tables/roles/user-roles.ts';
import { ShortCache } from './short-cache.ts';

/** Users whose roles a process knows: each holds up to a thousand names. */
export const maxCachedUsers = 2000;

/** The roles of users as this process knows them, at most half a second old. */
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

  /** How many users it knows. */
  get size(): number {
    return this.#users.size;
  }

  /** Names of the roles of a user, by its key. Users of an app without roles cost no question of their own. */
  async rolesOf(appId: string, userId: number): Promise<readonly string[]> {
    return (await this.#apps.get(appId)) ? this.#users.get(`${appId} ${userId}`) : [];
  }

  /** Called by the process that changes roles of an app itself, so that its own next answer is the new one. */
  forget(appId: string): void {
    this.#apps.forget(appId);
    this.#users.forgetBeginning(`${appId} `);
  }
}
