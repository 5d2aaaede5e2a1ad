import type { QueryCaller } from '../../../shared/db/limits/query-limits.ts';
import { type Handle, isDeadlock, violatedConstraint } from '../../../shared/db/pool.ts';
import { setIdentities } from '../../../shared/db/tables/users/identities.ts';
import { insertUser, updateUser } from '../../../shared/db/tables/users/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type ErrorName, refuse } from '../../../shared/domain/errors/errors.ts';
import { newObjectId } from '../../../shared/domain/ids.ts';
import { type Identity, identitiesOf } from '../../../shared/domain/users/auth-data.ts';
import { sealedAuthData } from '../../../shared/domain/users/auth-tokens.ts';
import type { User, UserDraft } from '../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../deps.ts';
import type { MailLinks } from '../verification/links.ts';
import type { Sessions } from './sessions/sessions.ts';
import { takeSignUpBudget } from './sign-up/sign-up-limits.ts';

/** A third-party account belongs to another user. */
export class IdentityTaken extends Error {
  override name = 'IdentityTaken';
}

const refusalOfIndex = new Map<string, ErrorName>([
  ['app_user_username', 'usernameTaken'],
  ['app_user_email', 'emailTaken'],
  ['app_user_mobile_phone_number', 'phoneTaken'],
]);

/** A user that is to be made. */
export interface NewAccount {
  draft: UserDraft;
  passwordHash: string | null;
  /** Network address that it counts for; undefined where it counts for none (`signUpIpAddress`). */
  ipAddress: string | undefined;
}

/**
 * The only place that writes what a user is: the row and its third-party accounts, together. What is to happen
 * whenever a user is made or changed happens here.
 */
export class UserStore {
  readonly #deps: Pick<ApiDeps, 'db' | 'queries' | 'clock' | 'vault'>;
  readonly #sessions: Sessions;
  readonly #links: MailLinks;

  constructor(
    deps: Pick<ApiDeps, 'db' | 'queries' | 'clock' | 'vault'>,
    parts: { sessions: Sessions; links: MailLinks },
  ) {
    this.#deps = deps;
    this.#sessions = parts.sessions;
    this.#links = parts.links;
  }

  /**
   * Runs `work` in one transaction, again when two users wanted what the other had. Names, addresses and numbers that
   * another user has are 202, 203 and 214, whichever call was first; third-party accounts are 208. `asker` is given where a
   * condition is asked, which takes the app's share of those.
   */
  async transaction<T>(work: (tx: Handle) => Promise<T>, asker?: QueryCaller, triesLeft = 3): Promise<T> {
    const { db, queries } = this.#deps;
    try {
      return await (asker ? queries.change(asker, work) : db.transaction(work));
    } catch (error) {
      if (isDeadlock(error)) {
        if (triesLeft > 1) return this.transaction(work, asker, triesLeft - 1);
        throw refuse('conflict');
      }
      if (error instanceof IdentityTaken) throw refuse('accountLinked');
      const refusal = refusalOfIndex.get(violatedConstraint(error) ?? '');
      throw refusal ? refuse(refusal) : error;
    }
  }

  /** Makes a user and its session; gives the token too. Throws `IdentityTaken`, 429 as `takeSignUpBudget`. */
  async create(
    tx: Handle,
    app: App,
    { draft, passwordHash, ipAddress }: NewAccount,
  ): Promise<{ user: User; token: string }> {
    await takeSignUpBudget(this.#deps, tx, { app, draft, ipAddress });
    const { appId } = app;
    const objectId = newObjectId();
    const { token, ...session } = this.#sessions.create(appId, objectId);
    const sealed = this.#sealed(appId, draft);
    const user = await insertUser(tx, appId, {
      objectId,
      draft: sealed,
      passwordHash,
      session,
      now: this.now(),
    });
    // Who is found by nothing is new: a UnionID that is taken by now was so by a call of the same moment.
    if (draft.authData !== null && (await this.#claimIdentities(tx, appId, user)).length > 0)
      throw new IdentityTaken();
    await this.#sendVerificationMail(tx, app, user);
    return { user, token };
  }

  /** Writes a locked user anew. Throws `IdentityTaken`. */
  async save(tx: Handle, app: App, { current, draft }: { current: User; draft: UserDraft }): Promise<User> {
    const { appId } = app;
    const sealed = this.#sealed(appId, draft);
    const user = await updateUser(tx, appId, { id: current.id, draft: sealed, now: this.now() });
    if (user.email !== current.email) await this.#sendVerificationMail(tx, app, user);
    if (draft.authData === current.authData) return user;
    // A UnionID that another user has already stays there: it finds users, but names none.
    const taken = await this.#claimIdentities(tx, appId, user);
    if (taken.some(({ platform }) => Object.hasOwn(draft.authData ?? {}, platform)))
      throw new IdentityTaken();
    return user;
  }

  /** Tokens of platforms are stored under CARILLON_SECRET only. */
  #sealed(appId: string, draft: UserDraft): UserDraft {
    if (draft.authData === null) return draft;
    return { ...draft, authData: sealedAuthData(this.#deps.vault, appId, draft.authData) };
  }

  /** A new address that is to be confirmed gets a mail (protocol/users.md#e-mail-verification). */
  async #sendVerificationMail(tx: Handle, app: App, user: User): Promise<void> {
    if (user.email === null || user.emailVerified !== false || !app.options.emailVerification) return;
    // Whoever enters the same address again and again must not fill its box.
    if (await this.#links.takeBudget(tx, app, 'verifyEmail', user.email))
      await this.#links.send(tx, app, user, 'verifyEmail');
  }

  /** Makes the accounts of a user its own; gives those that are another's. */
  #claimIdentities(tx: Handle, appId: string, user: User): Promise<Identity[]> {
    const { own, unions } = identitiesOf(user.authData ?? {});
    return setIdentities(tx, appId, { userId: user.id, identities: [...own, ...unions] });
  }

  now(): Date {
    return new Date(this.#deps.clock.now());
  }
}
