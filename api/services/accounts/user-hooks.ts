import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { stableText } from '../../../shared/domain/objects/operations.ts';
import type { AuthDataChanges } from '../../../shared/domain/users/auth-data.ts';
import { readAuthData } from '../../../shared/domain/users/auth-data.ts';
import { changedUser, readUserChanges, type UserChanges } from '../../../shared/domain/users/changes.ts';
import { draftDocument, type User, type UserDraft, userDocument } from '../../../shared/domain/users/user.ts';
import type { HookCaller, Hooks } from '../functions/hooks.ts';
import type { SessionOwner } from './sessions/sessions.ts';

export type UserHookCaller = HookCaller & { session?: SessionOwner | undefined };

/** A write of a user, as its hooks see it. */
interface Change {
  /** As sent: it may say which hooks are not to run. */
  body: JsonObject;
  touched: ReadonlySet<string>;
}

/** What only the service sets, or never leaves it. */
const serviceMembers = new Set([
  'objectId',
  'createdAt',
  'updatedAt',
  'sessionToken',
  'password',
  '__type',
  'className',
]);

const view = { isOwn: true, hasAcl: true } as const;

/** What an app's function host has to say when users are made, changed, verified or let in (protocol/functions.md#hooks). */
export class UserHooks {
  readonly #hooks: Hooks;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  /** `onAuthData`: the accounts of third parties that are to count in place of those sent. Throws 142. */
  async onAuthData(caller: UserHookCaller, body: JsonObject, changes: UserChanges): Promise<UserChanges> {
    const given = [...changes.authData].filter(([, entry]) => entry !== null);
    if (given.length === 0 || !(await this.#hooks.isNeeded('onAuthData', caller, body))) return changes;
    const { result } = await this.#hooks.run('onAuthData', caller, { authData: Object.fromEntries(given) });
    if (!isJsonObject(result)) return changes;
    const taken = [...changes.authData].filter(([, entry]) => entry === null);
    const authData: AuthDataChanges = asHookRefusal(() => new Map([...taken, ...readAuthData(result)]));
    return { ...changes, authData };
  }

  /** `beforeSave`: the user that is to be made, as the hook wants it. Throws 142. */
  async beforeSave(caller: UserHookCaller, body: JsonObject, draft: UserDraft): Promise<UserDraft> {
    if (!(await this.#hooks.isNeeded('beforeSave', caller, body))) return draft;
    const object = draftDocument(draft, view);
    const answer = await this.#hooks.run('beforeSave', caller, hookMessage(caller, object));
    const wanted = differences(object, answer, draft.fields);
    const { emailVerification } = caller.app.options;
    return asHookRefusal(() =>
      changedUser(draft, readUserChanges(wanted), { emailVerification, isMaster: true }),
    );
  }

  /** `afterSave`. */
  afterSave(caller: UserHookCaller, body: JsonObject, document: JsonObject): void {
    this.#hooks.runInBackground('afterSave', caller, {
      body,
      message: hookMessage(caller, withoutToken(document)),
    });
  }

  /** `beforeUpdate`: it may refuse, what it changes is not kept (the public service's rule). Throws 142. */
  async beforeUpdate(
    caller: UserHookCaller,
    user: User,
    { body, touched, draft }: Change & { draft: () => UserDraft },
  ): Promise<void> {
    if (!(await this.#hooks.isNeeded('beforeUpdate', caller, body))) return;
    const object = userDocument({ ...user, ...draft() }, view);
    await this.#hooks.run('beforeUpdate', caller, hookMessage(caller, object, touched));
  }

  /** `afterUpdate`. */
  afterUpdate(caller: UserHookCaller, document: JsonObject, { body, touched }: Change): void {
    this.#hooks.runInBackground('afterUpdate', caller, {
      body,
      message: hookMessage(caller, document, touched),
    });
  }

  /** `beforeDelete`, for a user that is asked for once it is known that the hook is there. Throws 142. */
  async beforeDelete(
    caller: UserHookCaller,
    body: JsonObject,
    find: () => Promise<User | undefined>,
  ): Promise<void> {
    if (!(await this.#hooks.isNeeded('beforeDelete', caller, body))) return;
    const user = await find();
    if (user) await this.#hooks.run('beforeDelete', caller, hookMessage(caller, userDocument(user, view)));
  }

  /** `afterDelete`. */
  afterDelete(caller: UserHookCaller, body: JsonObject, user: User): void {
    this.#hooks.runInBackground('afterDelete', caller, {
      body,
      message: hookMessage(caller, userDocument(user, view)),
    });
  }

  /** `onLogin`, of a user who has proven itself. Throws 401 with the hook's words. */
  async onLogin(caller: UserHookCaller, document: JsonObject): Promise<void> {
    if (!(await this.#hooks.isNeeded('onLogin', caller))) return;
    await this.#hooks.run('onLogin', caller, { object: withoutToken(document) });
  }

  /** `onVerified`: an address or a number is confirmed. */
  onVerified(kind: 'sms' | 'email', caller: UserHookCaller, user: User): void {
    const hook = kind === 'sms' ? 'onVerifiedSms' : 'onVerifiedEmail';
    this.#hooks.runInBackground(hook, caller, { message: { object: userDocument(user, view) } });
  }
}

/** A hook is handed the user, the members that are written, and who writes them. */
function hookMessage(caller: UserHookCaller, object: JsonObject, touched?: ReadonlySet<string>): JsonObject {
  const { session } = caller;
  return {
    object: touched ? { ...object, _updatedKeys: [...touched] } : object,
    ...(session ? { user: { objectId: session.objectId } } : {}),
  };
}

function withoutToken({ sessionToken: _, ...document }: JsonObject): JsonObject {
  return document;
}

/**
 * What a hook changed. An answer that has the user's name is the whole user, so that custom members it lacks are to go;
 * any other names what it changes.
 */
function differences(object: JsonObject, answer: JsonObject, custom: JsonObject): JsonObject {
  const written = Object.entries(answer).filter(([name, value]) => {
    const before = Object.hasOwn(object, name) ? object[name] : undefined;
    return !serviceMembers.has(name) && (before === undefined || stableText(before) !== stableText(value));
  });
  const isWhole = typeof answer.username === 'string';
  const gone = Object.keys(custom).filter((name) => isWhole && !Object.hasOwn(answer, name));
  return Object.fromEntries([...written, ...gone.map((name) => [name, { __op: 'Delete' }])]);
}

/** What a hook wants must be fit for a user; where it is not, that is said in the sentence of hooks. */
function asHookRefusal<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw refuse('hookRefused', `Cloud Code validation failed. Error detail : ${error.message}`);
  }
}
