import type { Handle } from '../../../../shared/db/pool.ts';
import { countRows } from '../../../../shared/db/tables/selection.ts';
import { findUser, selectUsers } from '../../../../shared/db/tables/users/users.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { readFlag } from '../../../../shared/domain/plain-values.ts';
import { type User, userDocument } from '../../../../shared/domain/users/user.ts';
import {
  maxIncludes,
  parseInclude,
  resolveInclude,
  resolveIncludes,
} from '../../../../shared/query/list/include.ts';
import { parseKeys, project } from '../../../../shared/query/list/keys.ts';
import { compileList, type ListQuery, parseListQuery } from '../../../../shared/query/list/list.ts';
import { parseNames } from '../../../../shared/query/parse/names.ts';
import { userClass } from '../../../../shared/query/schema/classes.ts';
import type { Viewer } from '../../../../shared/query/viewer.ts';
import type { ApiDeps } from '../../deps.ts';
import { includeSourceFor } from '../../queries/included-objects.ts';
import { isObjectId, readerFor, requireRead, tokenOpenerFor, type UserCaller } from '../caller.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { requireStrictQuery } from './strict-queries.ts';

/**
 * Reads users (protocol/users.md#reading-users). Returns a session token to its own session only.
 */
export class UserLookup {
  readonly #deps: Pick<ApiDeps, 'db' | 'queries' | 'vault'>;
  readonly #sessions: Sessions;

  constructor(deps: Pick<ApiDeps, 'db' | 'queries' | 'vault'>, sessions: Sessions) {
    this.#deps = deps;
    this.#sessions = sessions;
  }

  /** Returns a user. Throws 211 for an unknown id, 403 when the ACL denies the caller, 116 for too much to include. */
  async get(caller: UserCaller, objectId: string, query: Record<string, unknown>): Promise<JsonObject> {
    const keys = parseKeys(query.keys);
    const include = parseInclude(query.include, userClass);
    const { appId } = caller.app;
    const user = isObjectId(objectId) && (await findUser(this.#deps.db, appId, { key: { objectId } }));
    if (!user) throw refuse('userNotFound');
    requireRead(caller, user);
    const isOwn = caller.isMaster || caller.session?.id === user.id;
    const view = { isOwn, open: tokenOpenerFor(caller, this.#deps.vault), hasAcl: hasAcl(query) };
    const document = userDocument(user, view);
    const whole =
      include.size === 0
        ? document
        : await this.#deps.queries.readFresh(caller, (db) =>
            resolveInclude(document, include, includeSourceFor(caller, { db, hasAcl: hasAcl(query) })),
          );
    return { ...project(whole, keys, userClass), ...(await this.#tokenFor(caller, user, query)) };
  }

  /**
   * Returns the token for `include=sessionToken` of the user whose current session this is; the
   * Java SDK stores it.
   */
  async #tokenFor(
    { app: { appId }, session }: UserCaller,
    user: User,
    { include }: Record<string, unknown>,
  ): Promise<JsonObject> {
    const isIncluded =
      typeof include === 'string' && parseNames(include, 'include', maxIncludes).includes('sessionToken');
    if (!isIncluded || !session?.hash.equals(user.session.hash)) return {};
    return { sessionToken: await this.#sessions.currentToken(this.#deps.db, appId, user) };
  }

  /**
   * Lists users (GET of the collection), for the master key, or by the app's option without third-party accounts and
   * without users whose ACL denies the caller. With `isStrict`, e-mail addresses and numbers match as a whole only.
   * Throws 403 without permission, 102/105/106/111 for the query, 116 for too much, 124 for a timeout.
   */
  async list(
    caller: UserCaller,
    query: Record<string, unknown>,
    { isStrict }: { isStrict: boolean },
  ): Promise<{ results: JsonObject[]; count?: number }> {
    const { app, isMaster } = caller;
    if (!isMaster && !app.options.allowUserQuery) throw refuse('forbiddenFind');
    const reader = readerFor(caller);
    return this.#deps.queries.readPrepared(caller, () => {
      const list = parseListQuery(query, userClass, reader);
      if (isStrict) requireStrictQuery(list);
      return this.#finder(caller, list, { reader, hasAcl: hasAcl(query) });
    });
  }

  #finder(
    caller: UserCaller,
    list: ListQuery,
    { reader, hasAcl }: { reader: Viewer; hasAcl: boolean },
  ): (tx: Handle) => Promise<{ results: JsonObject[]; count?: number }> {
    const selection = compileList(list, userClass, reader);
    const view = { isOwn: caller.isMaster, open: tokenOpenerFor(caller, this.#deps.vault), hasAcl };
    return async (tx) => {
      const found = list.limit === 0 ? [] : await selectUsers(tx, selection);
      const documents = found.map((user) => userDocument(user, view));
      const source = includeSourceFor(caller, { db: tx, hasAcl });
      const whole = await resolveIncludes(documents, list.include, source);
      const results = whole.map((document) => project(document, list.keys, userClass));
      return list.hasCount ? { results, count: await countRows(tx, 'app_user', selection) } : { results };
    };
  }
}

const hasAcl = (query: Record<string, unknown>): boolean => readFlag(query, 'returnACL');
