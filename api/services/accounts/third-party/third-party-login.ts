import { z } from 'zod';
import type { Handle } from '../../../../shared/db/pool.ts';
import { findUser, findUsersOfIdentities } from '../../../../shared/db/tables/users.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { type ErrorName, Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import { newUsername } from '../../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import {
  type AuthDataChanges,
  changedAuthData,
  identitiesOf,
} from '../../../../shared/domain/users/auth-data.ts';
import type {
  CodeExchange,
  PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import {
  type CheckedUserChanges,
  newUser,
  requireSize,
  type UserRules,
} from '../../../../shared/domain/users/changes.ts';
import { type UserDraft, userDocument } from '../../../../shared/domain/users/user.ts';
import type { LoginService } from '../login/login.ts';
import type { UserStore } from '../user-store.ts';
import { type AnswerForm, codeText, type PlatformClient } from './platform-clients.ts';

/** Maximum number of tries if concurrent sign-ups use the same account. */
const maxTries = 10;

/** Result of a call that logs in or signs up. */
export interface LoginResult {
  document: JsonObject;
  isNew: boolean;
}

interface ThirdPartyRequest {
  changes: CheckedUserChanges;
  rules: UserRules;
  /** Network address that a new user counts against. */
  ipAddress: string | undefined;
  /** Hashes the password of the body. Called only for a new user. */
  passwordHash: () => Promise<string | null>;
  /** Runs `beforeSave` for a new user. */
  applyHooks: (draft: UserDraft) => Promise<UserDraft>;
  failOnNotExist: boolean;
}

/**
 * Logs in and signs up by third-party authorization data (protocol/users.md#third-party-accounts).
 */
export class ThirdPartyLogin {
  readonly #parts: { store: UserStore; login: LoginService };

  constructor(parts: { store: UserStore; login: LoginService }) {
    this.#parts = parts;
  }

  /**
   * Logs in the user of a third-party account, or creates the user. Concurrent calls with the same
   * account create one user. Throws error 208 if the accounts belong to several users, error 211 if
   * `failOnNotExist` is true and no user exists, error 429 after too many sign-ups from one network
   * address.
   */
  async logInOrSignUp(app: App, request: ThirdPartyRequest): Promise<LoginResult> {
    let passwordHash: string | null | undefined;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const existing = await this.#logIn(app, request);
      if (existing) return { document: existing, isNew: false };
      if (request.failOnNotExist) throw refuse('userNotFound');
      passwordHash ??= await request.passwordHash();
      const created = await this.#signUp(app, request, passwordHash);
      if (created) return { document: created, isNew: true };
    }
    throw refuse('accountLinked');
  }

  /** Logs in the user of the accounts. Returns undefined if no user has them. */
  #logIn(
    app: App,
    { changes: { authData: changes }, rules, ipAddress }: ThirdPartyRequest,
  ): Promise<JsonObject | undefined> {
    const { store, login } = this.#parts;
    return store.transaction(async (tx) => {
      const id = await findOwner(tx, app, changes);
      const user =
        id === undefined
          ? undefined
          : await findUser(tx, app.appId, { key: { id }, isLocked: true });
      // Accounts move to another user only while the user is locked, so the second search is
      // reliable.
      if (!user || (await findOwner(tx, app, changes)) !== id) return undefined;
      const authData = changedAuthData(user.authData, changes);
      // Sizes are compared as stored, because the tokens of the current user are encrypted.
      const draft = store.sealed(app.appId, { ...user, authData });
      requireSize(draft, user, rules);
      const by = { app, isMaster: ipAddress === undefined, remoteAddress: ipAddress ?? '' };
      return login.completeLogin(app, await store.save(tx, app, { current: user, draft, by }), tx);
    });
  }

  /**
   * Creates the user. Returns undefined if a concurrent call created a user with the same account
   * or name.
   */
  async #signUp(
    app: App,
    { changes, rules, ipAddress, applyHooks }: ThirdPartyRequest,
    passwordHash: string | null,
  ): Promise<JsonObject | undefined> {
    const draft = await applyHooks(newUser(changes, changes.username ?? newUsername(), rules));
    const { store } = this.#parts;
    try {
      const account = { draft, passwordHash, ipAddress };
      const { user, token } = await store.transaction((tx) => store.create(tx, app, account));
      return { ...userDocument(user, { isOwn: true }), sessionToken: token };
    } catch (error) {
      const isTaken = error instanceof Refusal && takenKinds.has(error.kind);
      if (
        isTaken &&
        (await store.transaction((tx) => findOwner(tx, app, changes.authData))) !== undefined
      )
        return undefined;
      throw error;
    }
  }
}

/** Conflicts with a concurrent sign-up. */
const takenKinds = new Set<ErrorName>([
  'accountLinked',
  'usernameTaken',
  'emailTaken',
  'phoneTaken',
]);

/**
 * Returns the id of the user who has these accounts. Searches by the accounts' own ids, then by
 * their UnionIDs. Throws error 208 if several users have them.
 */
async function findOwner(
  tx: Handle,
  { appId }: App,
  changes: AuthDataChanges,
): Promise<number | undefined> {
  const entries = [...changes].flatMap(([platform, entry]) =>
    entry ? [[platform, entry] as const] : [],
  );
  const { own, unions } = identitiesOf(Object.fromEntries(entries));
  const owners = await findUsersOfIdentities(tx, appId, own);
  const found = owners.length > 0 ? owners : await findUsersOfIdentities(tx, appId, unions);
  if (found.length > 1) throw refuse('accountLinked');
  return found[0];
}

const session = z.object({
  openid: z.string().min(1),
  session_key: z.string(),
  unionid: z.string().min(1).optional(),
});

/**
 * Replies of `jscode2session` of WeChat and QQ. Codes that refuse the client's code: missing
 * (41008), invalid or old (40029), used (40163), user barred (40226). A wrong id or secret of the
 * app (40013, 40125) and too many calls (45011) say nothing about the user.
 */
const form: AnswerForm<z.infer<typeof session>> = {
  reply: session,
  codeOf: ({ errcode }) => codeText(errcode),
  refusals: new Set(['41008', '40029', '40163', '40226']),
};

/**
 * Exchanges the code of a mini program (`wx.login`, `qq.login`) for its account. Returns the entry
 * to store, in which the platform's `openid`, `session_key` and `unionid` replace the code. The
 * call uses up the code, so it must not be repeated. Returns undefined if the code is wrong or the
 * client names another account. Throws error 503 if the platform gives no clear answer
 * (protocol/users.md#mini-programs).
 */
export async function exchangeCode(
  client: PlatformClient,
  entry: JsonObject,
  { endpoint, ca, appId, appSecret }: CodeExchange,
): Promise<PlatformConfirmation | undefined> {
  const { code, uid, openid, ...rest } = entry;
  if (typeof code !== 'string' || code === '') return undefined;
  const members = {
    appid: appId,
    secret: appSecret,
    js_code: code,
    grant_type: 'authorization_code',
  };
  const path = `/sns/jscode2session?${new URLSearchParams(members)}`;
  const found = await client.ask({ baseUrl: endpoint, ca }, { method: 'GET', path }, form);
  if (!found) return undefined;
  // If the client names an account, it must be the account of the code.
  const isOther = [uid, openid].some((named) => named !== undefined && named !== found.openid);
  if (isOther) return undefined;
  const { unionid } = found;
  const completed = {
    ...rest,
    openid: found.openid,
    session_key: found.session_key,
    ...(unionid === undefined ? {} : { unionid }),
  };
  return { unionid, completed };
}
