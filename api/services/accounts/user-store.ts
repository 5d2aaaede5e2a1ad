import { isDeadlock, violatedConstraint } from '../../../shared/db/limits/database-errors.ts';
import type { QueryCaller } from '../../../shared/db/limits/query-limits.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { countSignUp, signUpWindows } from '../../../shared/db/tables/sign-in.ts';
import {
  heldIdentities,
  insertUser,
  releaseOtherAccounts,
  setIdentities,
  updateUser,
} from '../../../shared/db/tables/users.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type ErrorName, Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { newObjectId } from '../../../shared/domain/ids.ts';
import {
  type Identity,
  identitiesOf,
  sealedAuthData,
} from '../../../shared/domain/users/auth-data.ts';
import { draftBytes, type User, type UserDraft } from '../../../shared/domain/users/user.ts';
import type { ClientStorage, StoringCaller } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';
import { ipAddressKey } from '../sms/budgets.ts';
import type { MailLinks } from '../verification/links.ts';
import { signUpIpAddress } from './caller.ts';
import type { Sessions } from './sessions/sessions.ts';

/** Error: a third-party account belongs to another user. */
class IdentityTaken extends Error {
  override name = 'IdentityTaken';
}

const refusalOfIndex = new Map<string, ErrorName>([
  ['app_user_username', 'usernameTaken'],
  ['app_user_email', 'emailTaken'],
  ['app_user_mobile_phone_number', 'phoneTaken'],
]);

/** Account to create. */
export interface NewAccount {
  draft: UserDraft;
  passwordHash: string | null;
  /**
   * Network address that the sign-up counts against. Undefined if the sign-up does not count
   * (`signUpIpAddress`).
   */
  ipAddress: string | undefined;
}

/**
 * Writes users: the row together with its third-party accounts. Only this class writes users, so
 * effects of every creation or change belong here.
 */
export class UserStore {
  readonly #deps: Pick<ApiDeps, 'db' | 'queries' | 'clock' | 'vault'>;
  readonly #sessions: Sessions;
  readonly #links: MailLinks;
  readonly #storage: ClientStorage;

  constructor(
    deps: Pick<ApiDeps, 'db' | 'queries' | 'clock' | 'vault'>,
    parts: { sessions: Sessions; links: MailLinks; storage: ClientStorage },
  ) {
    this.#deps = deps;
    this.#sessions = parts.sessions;
    this.#links = parts.links;
    this.#storage = parts.storage;
  }

  /**
   * Runs `work` in one transaction and retries after a deadlock. Throws errors 202, 203 and 214 if
   * another user has the name, address or number, and error 208 if another user has the third-party
   * account. A call with a `where` passes `queryCaller`, so that it counts against the app's query
   * capacity.
   */
  async transaction<T>(
    work: (tx: Handle) => Promise<T>,
    queryCaller?: QueryCaller,
    triesLeft = 3,
  ): Promise<T> {
    const { db, queries } = this.#deps;
    try {
      return await (queryCaller ? queries.change(queryCaller, work) : db.transaction(work));
    } catch (error) {
      if (isDeadlock(error)) {
        if (triesLeft > 1) return this.transaction(work, queryCaller, triesLeft - 1);
        throw refuse('conflict');
      }
      if (error instanceof IdentityTaken) throw refuse('accountLinked');
      const refusal = refusalOfIndex.get(violatedConstraint(error) ?? '');
      throw refusal ? refuse(refusal) : error;
    }
  }

  /**
   * Creates a user and its session. Returns the user and the token. Throws `IdentityTaken`, and 429
   * as `takeSignUpBudget`.
   */
  async create(
    tx: Handle,
    app: App,
    { draft, passwordHash, ipAddress }: NewAccount,
  ): Promise<{ user: User; token: string }> {
    await takeSignUpBudget(this.#deps, tx, { app, draft, ipAddress });
    const { appId } = app;
    const objectId = newObjectId();
    const { token, ...session } = this.#sessions.create(appId, objectId);
    const sealed = this.sealed(appId, draft);
    const user = await insertUser(tx, appId, {
      objectId,
      draft: sealed,
      passwordHash,
      session,
      now: this.now(),
    });
    // The search found no user with these accounts. If a UnionID is taken now, a concurrent sign-up
    // took it.
    if (draft.authData !== null && (await this.#claimIdentities(tx, appId, user)).length > 0)
      throw new IdentityTaken();
    await this.#sendVerificationMail(tx, app, user, ipAddress);
    return { user, token };
  }

  /**
   * Writes a locked user. `by` is the caller whose members are written. The user may grow only as
   * far as the caller's network address may store. Throws `IdentityTaken` and 429.
   */
  async save(
    tx: Handle,
    app: App,
    { current, draft, by }: { current: User; draft: UserDraft; by?: StoringCaller },
  ): Promise<User> {
    const { appId } = app;
    const sealed = this.sealed(appId, draft);
    const user = await updateUser(tx, appId, { id: current.id, draft: sealed, now: this.now() });
    if (user.email !== current.email)
      await this.#sendVerificationMail(tx, app, user, by && signUpIpAddress(by));
    if (draft.authData !== current.authData) await this.#moveIdentities(tx, appId, user, draft);
    // Counted last, because a refused change stores nothing.
    if (by) this.#storage.accountOf('users', by)?.change(draftBytes(sealed), draftBytes(current));
    return user;
  }

  /**
   * Writes changed third-party accounts of a user. If another user has the UnionID, that user keeps
   * it: a UnionID helps to find users but does not identify one.
   */
  async #moveIdentities(
    tx: Handle,
    appId: string,
    user: User,
    { authData }: UserDraft,
  ): Promise<void> {
    const conflicting = await this.#claimIdentities(tx, appId, user);
    if (conflicting.some(({ platform }) => Object.hasOwn(authData ?? {}, platform)))
      throw new IdentityTaken();
  }

  /** Encrypts the platforms' tokens with CARILLON_SECRET, as in a stored user. */
  sealed(appId: string, draft: UserDraft): UserDraft {
    if (draft.authData === null) return draft;
    return { ...draft, authData: sealedAuthData(this.#deps.vault, appId, draft.authData) };
  }

  /**
   * Sends a verification mail to an unverified address (protocol/users.md#e-mail-verification). If
   * a budget of mails is exhausted, sends nothing: the user may request the mail later.
   */
  async #sendVerificationMail(
    tx: Handle,
    app: App,
    user: User,
    ipAddress: string | undefined,
  ): Promise<void> {
    if (user.email === null || user.emailVerified !== false || !app.options.emailVerification)
      return;
    await this.#links.send(tx, app, user, { purpose: 'verifyEmail', ipAddress });
  }

  /**
   * Writes the third-party accounts of a user. Returns the accounts that belong to another user.
   * Earlier versions let any entry claim its UnionID. The user that has such a UnionID keeps it,
   * unless its entry says that it is not the main account. In that case, a main account takes the
   * UnionID.
   */
  async #claimIdentities(tx: Handle, appId: string, user: User): Promise<Identity[]> {
    const { own, claims, undecided } = identitiesOf(user.authData ?? {});
    const kept = await heldIdentities(tx, appId, { userId: user.id, identities: undecided });
    const write = () =>
      setIdentities(tx, appId, { userId: user.id, identities: [...own, ...claims, ...kept] });
    const conflicting = await write();
    const unions = conflicting.filter(
      ({ platform }) => !Object.hasOwn(user.authData ?? {}, platform),
    );
    return (await releaseOtherAccounts(tx, appId, unions)) ? write() : conflicting;
  }

  now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

/**
 * Counts a new user against the limits of its network address, as part of `tx` (options
 * `signUpsPerAddressPerHour` and `signUpBytesPerAddressPerDay`). If a limit is exceeded, throws
 * error 429 with the seconds until the window ends, and the rollback of `tx` undoes the count.
 * Counts nothing without an `ipAddress`, which servers of the app do not have (`signUpIpAddress`).
 */
export async function takeSignUpBudget(
  deps: Pick<ApiDeps, 'vault' | 'clock'>,
  tx: Handle,
  { app, draft, ipAddress }: { app: App; draft: UserDraft; ipAddress: string | undefined },
): Promise<void> {
  if (ipAddress === undefined) return;
  const { signUpsPerAddressPerHour, signUpBytesPerAddressPerDay } = app.options;
  const nowMs = deps.clock.now();
  const key = ipAddressKey(deps, ipAddress);
  const count = { appId: app.appId, key, bytes: draftBytes(draft) };
  const { users, bytes } = await countSignUp(tx, count, new Date(nowMs));
  const ends = [
    ...(users.n > signUpsPerAddressPerHour ? [users.since.getTime() + signUpWindows.usersMs] : []),
    ...(bytes.n > signUpBytesPerAddressPerDay
      ? [bytes.since.getTime() + signUpWindows.bytesMs]
      : []),
  ];
  if (ends.length === 0) return;
  throw new Refusal('tooManyRequests', {
    text: 'Too many users sign up from this network address.',
    retryAfterSeconds: Math.max(1, Math.ceil((Math.max(...ends) - nowMs) / 1000)),
  });
}
