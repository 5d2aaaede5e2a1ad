import { findUser, setPassword } from '../../../../shared/db/tables/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { readPassword, type User, userDocument } from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireCurrentSession, requireSelf, type UserCaller } from '../caller.ts';
import type { LoginLocks } from '../login/login.ts';
import type { Passwords } from '../passwords/passwords.ts';
import type { UserStore } from '../user-store.ts';
import type { Sessions } from './sessions.ts';

interface Parts {
  passwords: Passwords;
  sessions: Sessions;
  locks: LoginLocks;
  store: UserStore;
}

/**
 * Reads and renews the session of a user, and changes the user's password
 * (protocol/users.md#session-tokens).
 */
export class SessionService {
  readonly #deps: ApiDeps;
  readonly #parts: Parts;

  constructor(deps: ApiDeps, parts: Parts) {
    this.#deps = deps;
    this.#parts = parts;
  }

  /**
   * Returns the user of a token, in the same form as login. Throws error 211 if the token is
   * invalid (protocol/clients.md#sessions-in-requests).
   */
  async me(app: App, token: unknown): Promise<JsonObject> {
    const user = await this.#parts.sessions.findUser(app, token);
    if (!user || typeof token !== 'string') throw refuse('userNotFound');
    return { ...userDocument(user, { isOwn: true }), sessionToken: token };
  }

  /**
   * Replaces the session. Throws error 206 if the caller is neither the user nor has the master
   * key, error 211 if the user does not exist.
   */
  async refresh(caller: UserCaller, objectId: string): Promise<JsonObject> {
    requireSelf(caller, objectId);
    const { store, sessions } = this.#parts;
    return store.transaction(async (tx) => {
      const { appId } = caller.app;
      const user = await findUser(tx, appId, { key: { objectId }, isLocked: true });
      if (!user) throw refuse('userNotFound');
      requireCurrentSession(caller, user);
      const [changed, token] = await sessions.replace(tx, appId, { user, now: store.now() });
      return { ...userDocument(changed, { isOwn: true }), sessionToken: token };
    });
  }

  /**
   * Changes the password of the caller, who must send the old password. The session ends if the
   * app's option requires it. Wrong passwords count as failed logins. Throws error 206 for any
   * other caller, 210, 211, 218 and 219.
   */
  async updatePassword(
    caller: UserCaller,
    objectId: string,
    {
      old_password: oldPassword,
      new_password: newPassword,
    }: { old_password: string; new_password: string },
  ): Promise<JsonObject> {
    requireSelf({ ...caller, isMaster: false }, objectId);
    const { app } = caller;
    const { passwords, locks } = this.#parts;
    const password = readPassword(newPassword);
    const user = await findUser(this.#deps.db, app.appId, { key: { objectId } });
    if (!user) throw refuse('userNotFound');
    const target = { user, submitted: { kind: 'username', value: user.username } } as const;
    await locks.requireUnlocked(app, target);
    const { isMatch } = await passwords.verify(app.appId, oldPassword, user.passwordHash);
    if (!isMatch) {
      await locks.countFailure(app, target);
      throw refuse('passwordMismatch');
    }
    await locks.requireUnlocked(app, target);
    return this.#change(app, user, await passwords.hash(app.appId, password));
  }

  #change(app: App, verified: User, hash: string): Promise<JsonObject> {
    const { store, sessions } = this.#parts;
    return store.transaction(async (tx) => {
      const user = await findUser(tx, app.appId, { key: { id: verified.id }, isLocked: true });
      // The hash was replaced after the old password was compared with it.
      if (user?.passwordHash !== verified.passwordHash) throw refuse('passwordMismatch');
      const saved = await setPassword(tx, app.appId, { id: user.id, hash, now: store.now() });
      const [changed, token] = app.options.reloginAfterPasswordChange
        ? await sessions.replace(tx, app.appId, { user: saved, now: store.now() })
        : [saved, await sessions.currentToken(tx, app.appId, saved)];
      const { updatedAt, objectId } = changed;
      return { updatedAt: updatedAt.toISOString(), objectId, sessionToken: token };
    });
  }
}
