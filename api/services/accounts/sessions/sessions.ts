import { openOrUndefined, sha256 } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { findSessionOwner, findUser, replaceSession } from '../../../../shared/db/tables/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { AclUser } from '../../../../shared/domain/objects/acl.ts';
import {
  newSessionNonce,
  type SessionSecret,
  sealedSession,
  sessionTokens,
  type User,
} from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';

/** User that a valid session token belongs to. */
export interface TokenOwner {
  id: number;
  objectId: string;
  /** Hash of the token. */
  hash: Buffer;
}

/** User whose session a call carries, with the roles that count in ACLs. */
export type SessionOwner = TokenOwner & AclUser;

/** Form of tokens that this service creates or imports. */
const tokenForm = /^[A-Za-z0-9_-]{16,128}$/;

/**
 * Session tokens (develop/architecture.md#secrets). A token has 25 characters `[a-z0-9]` and is
 * found by its hash. It is derived by HMAC from CARILLON_SECRET and a stored nonce. Imported tokens
 * are stored encrypted in place of the nonce.
 *
 * Every login returns the same token until it is replaced, although the database contains no plain
 * token. Nothing is cached, so a replaced token is invalid in every process at once.
 */
export class Sessions {
  readonly #deps: Pick<ApiDeps, 'db' | 'vault'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'vault'>) {
    this.#deps = deps;
  }

  /** Creates a session for a new user, or a new session for an existing user. */
  create(appId: string, objectId: string): SessionSecret & { token: string } {
    const nonce = newSessionNonce(this.#deps.vault);
    const token = this.#tokens(appId, objectId, nonce)[0] ?? '';
    return { nonce, hash: sha256(token), token };
  }

  /**
   * Creates the session of an imported user from the token that the user's devices have. The token
   * stays valid, and every login returns it until it is replaced. Returns undefined if the token is
   * malformed.
   */
  createFromToken(appId: string, objectId: string, token: string): SessionSecret | undefined {
    if (!tokenForm.test(token)) return undefined;
    return { nonce: sealedSession(this.#deps.vault, appId, objectId, token), hash: sha256(token) };
  }

  /**
   * Returns the token of a user, whichever key of CARILLON_SECRET it was derived with. If that key
   * was removed, replaces the session: the removal of a key ends the sessions made with it.
   */
  async currentToken(db: Handle, appId: string, user: User): Promise<string> {
    const stored = this.#storedToken(appId, user);
    if (stored !== undefined) return stored;
    const session = this.create(appId, user.objectId);
    const changed = await replaceSession(db, appId, {
      id: user.id,
      to: session,
      from: user.session.hash,
    });
    if (changed) return session.token;
    // A concurrent call replaced the session first.
    const current = await findUser(db, appId, { key: { id: user.id } });
    const token = current && this.#storedToken(appId, current);
    if (token === undefined) throw refuse('userNotFound');
    return token;
  }

  /** Ends the session of a locked user and starts a new session. */
  async replace(
    tx: Handle,
    appId: string,
    { user, now }: { user: User; now: Date },
  ): Promise<[User, string]> {
    const session = this.create(appId, user.objectId);
    const changed = await replaceSession(tx, appId, { id: user.id, to: session, now });
    if (!changed) throw new Error('a locked user is gone');
    return [changed, session.token];
  }

  /** Returns the owner of a token. Returns undefined if the token is invalid. */
  async findOwner(app: App, token: unknown): Promise<TokenOwner | undefined> {
    const hash = this.#hashOf(token);
    const owner = hash && (await findSessionOwner(this.#deps.db, app.appId, hash));
    return owner && { ...owner, hash };
  }

  /** Returns the whole user of a token. Returns undefined if the token is invalid. */
  async findUser(app: App, token: unknown): Promise<User | undefined> {
    const hash = this.#hashOf(token);
    return hash && findUser(this.#deps.db, app.appId, { key: { sessionHash: hash } });
  }

  #hashOf(token: unknown): Buffer | undefined {
    return typeof token === 'string' && tokenForm.test(token) ? sha256(token) : undefined;
  }

  #storedToken(appId: string, { objectId, session }: User): string | undefined {
    return this.#tokens(appId, objectId, session.nonce).find((token) =>
      sha256(token).equals(session.hash),
    );
  }

  /**
   * Returns the possible tokens of a nonce, one per key in the order of the keys. For an encrypted
   * token, returns the token if a key decrypts it.
   */
  #tokens(appId: string, objectId: string, nonce: Buffer): string[] {
    return openOrUndefined(() => sessionTokens(this.#deps.vault, appId, objectId, nonce)) ?? [];
  }
}
