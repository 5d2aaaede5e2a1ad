import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { stableText } from '../../../shared/domain/objects/operations.ts';
import {
  type AuthDataChanges,
  readAuthData,
  vouchFor,
} from '../../../shared/domain/users/auth-data.ts';
import {
  changedUser,
  readUserChanges,
  type UserChanges,
} from '../../../shared/domain/users/changes.ts';
import {
  draftDocument,
  type User,
  type UserDraft,
  userDocument,
} from '../../../shared/domain/users/user.ts';
import type { HookCaller, Hooks } from '../functions/hooks.ts';
import type { SessionOwner } from './sessions/sessions.ts';

export type UserHookCaller = HookCaller & { session?: SessionOwner | undefined };

/** Change of a user, as passed to its hooks. */
interface Change {
  /** Body that the client sent. It may name hooks to skip. */
  body: JsonObject;
  touched: ReadonlySet<string>;
}

/** Members that only Carillon sets, or that it never reveals. */
const serviceMembers = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'sessionToken',
  'password',
  '__type',
  'className',
]);

const view = { isOwn: true, hasAcl: 'stored' } as const;

/**
 * Runs the app's hooks for users: creation, changes, deletion, verification, login
 * (protocol/functions.md#hooks).
 */
export class UserHooks {
  readonly #hooks: Hooks;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  /**
   * Runs `onAuthData`. If the hook returns third-party accounts, they replace the accounts of the
   * changes. Throws error 142 if the hook refuses.
   */
  async onAuthData(
    caller: UserHookCaller,
    body: JsonObject,
    changes: UserChanges,
  ): Promise<UserChanges> {
    const linked = [...changes.authData].filter(([, entry]) => entry !== null);
    if (linked.length === 0 || !(await this.#hooks.isNeeded('onAuthData', caller, body)))
      return changes;
    const { result } = await this.#hooks.run('onAuthData', caller, {
      authData: Object.fromEntries(linked),
      user: userOf(caller),
    });
    if (!isJsonObject(result)) return changes;
    const unlinked = [...changes.authData].filter(([, entry]) => entry === null);
    const authData: AuthDataChanges = asHookRefusal(
      () => new Map([...unlinked, ...readAuthData(result)]),
    );
    return { ...changes, authData };
  }

  /**
   * Runs `beforeSave`. Returns the new user with the hook's changes. Throws error 142 if the hook
   * refuses.
   */
  async beforeSave(caller: UserHookCaller, body: JsonObject, draft: UserDraft): Promise<UserDraft> {
    if (!(await this.#hooks.isNeeded('beforeSave', caller, body))) return draft;
    const object = draftDocument(draft, view);
    const answer = await this.#hooks.run('beforeSave', caller, hookMessage(caller, object));
    const changes = hookChanges(object, unwrapped(answer), draft.fields);
    const { emailVerification } = caller.app.options;
    return asHookRefusal(() => {
      const read = readUserChanges(changes);
      const checked = { ...read, authData: vouchFor(read.authData, 'function host') };
      return changedUser(draft, checked, { emailVerification, isMaster: true });
    });
  }

  /** Runs `afterSave` in the background. */
  afterSave(caller: UserHookCaller, body: JsonObject, document: JsonObject): void {
    this.#hooks.runInBackground('afterSave', caller, {
      body,
      message: hookMessage(caller, withoutToken(document)),
    });
  }

  /**
   * Runs `beforeUpdate`. Ignores the hook's changes, as LeanCloud does. Throws error 142
   * if the hook refuses.
   */
  async beforeUpdate(
    caller: UserHookCaller,
    user: User,
    { body, touched, draft }: Change & { draft: () => UserDraft },
  ): Promise<void> {
    if (!(await this.#hooks.isNeeded('beforeUpdate', caller, body))) return;
    const object = userDocument({ ...user, ...draft() }, view);
    await this.#hooks.run('beforeUpdate', caller, hookMessage(caller, object, touched));
  }

  /** Runs `afterUpdate` in the background. */
  afterUpdate(caller: UserHookCaller, document: JsonObject, { body, touched }: Change): void {
    this.#hooks.runInBackground('afterUpdate', caller, {
      body,
      message: hookMessage(caller, document, touched),
    });
  }

  /**
   * Runs `beforeDelete`. Calls `find` only if the app has the hook. Throws error 142 if the hook
   * refuses.
   */
  async beforeDelete(
    caller: UserHookCaller,
    body: JsonObject,
    find: () => Promise<User | undefined>,
  ): Promise<void> {
    if (!(await this.#hooks.isNeeded('beforeDelete', caller, body))) return;
    const user = await find();
    if (user)
      await this.#hooks.run('beforeDelete', caller, hookMessage(caller, userDocument(user, view)));
  }

  /** Runs `afterDelete` in the background. */
  afterDelete(caller: UserHookCaller, body: JsonObject, user: User): void {
    this.#hooks.runInBackground('afterDelete', caller, {
      body,
      message: hookMessage(caller, userDocument(user, view)),
    });
  }

  /**
   * Runs `onLogin` for an authenticated user. If the hook refuses, throws error 401 with its text.
   */
  async onLogin(caller: UserHookCaller, document: JsonObject): Promise<void> {
    if (!(await this.#hooks.isNeeded('onLogin', caller))) return;
    await this.#hooks.run('onLogin', caller, hookMessage(caller, withoutToken(document)));
  }

  /** Runs `onVerified` for an e-mail address or a number, in the background. */
  onVerified(kind: 'sms' | 'email', caller: UserHookCaller, user: User): void {
    const hook = kind === 'sms' ? 'onVerifiedSms' : 'onVerifiedEmail';
    this.#hooks.runInBackground(hook, caller, {
      message: hookMessage(caller, userDocument(user, view)),
    });
  }
}

/** Returns the payload of a hook: the user, the written members, and the user of the caller. */
function hookMessage(
  caller: UserHookCaller,
  object: JsonObject,
  touched?: ReadonlySet<string>,
): JsonObject {
  return {
    object: touched ? { ...object, _updatedKeys: [...touched] } : object,
    user: userOf(caller),
  };
}

/**
 * Returns the user whose session the call has, for the message of a hook. Returns null if there is
 * no session.
 */
const userOf = ({ session }: UserHookCaller): JsonObject | null =>
  session ? { objectId: session.objectId } : null;

function withoutToken({ sessionToken: _, ...document }: JsonObject): JsonObject {
  return document;
}

/** Returns the object of a reply. Some hosts wrap it in a `result`, as functions do. */
function unwrapped(answer: JsonObject): JsonObject {
  const { result, ...others } = answer;
  return isJsonObject(result) && Object.keys(others).length === 0 ? result : answer;
}

/**
 * Returns the changes in a hook's reply. A reply with a `username` is the whole user, so missing
 * custom members are deleted. Any other reply contains changed members only.
 */
function hookChanges(object: JsonObject, answer: JsonObject, custom: JsonObject): JsonObject {
  const written = Object.entries(answer).filter(([name, value]) => {
    const before = Object.hasOwn(object, name) ? object[name] : undefined;
    return !serviceMembers.has(name) && (before === undefined || !isSame(before, value));
  });
  const isWhole = typeof answer.username === 'string';
  const deleted = Object.keys(custom).filter((name) => isWhole && !Object.hasOwn(answer, name));
  return Object.fromEntries([...written, ...deleted.map((name) => [name, { __op: 'Delete' }])]);
}

/**
 * Compares values from a hook's reply. The PHP engine does not distinguish empty lists from empty
 * objects.
 */
function isSame(before: Json, after: Json): boolean {
  if (isEmpty(before) && isEmpty(after)) return true;
  if (!isJsonObject(before) || !isJsonObject(after))
    return stableText(before) === stableText(after);
  const names = Object.keys(before);
  return (
    names.length === Object.keys(after).length &&
    names.every(
      (name) => Object.hasOwn(after, name) && isSame(before[name] ?? null, after[name] ?? null),
    )
  );
}

const isEmpty = (value: Json): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** Converts errors in a hook's reply to 142, with the text of hook refusals. */
function asHookRefusal<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw refuse('hookRefused', `Cloud Code validation failed. Error detail : ${error.message}`);
  }
}
