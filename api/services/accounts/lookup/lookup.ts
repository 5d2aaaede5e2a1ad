import type { Handle } from '../../../../shared/db/pool.ts';
import { countRows } from '../../../../shared/db/tables/selection.ts';
import { findUser, selectUsers } from '../../../../shared/db/tables/users.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { type User, userDocument } from '../../../../shared/domain/users/user.ts';
import type { Condition } from '../../../../shared/query/condition.ts';
import {
  maxIncludes,
  parseInclude,
  resolveInclude,
  resolveIncludes,
} from '../../../../shared/query/list/include.ts';
import { parseKeys, project } from '../../../../shared/query/list/keys.ts';
import { compileList, type ListQuery, parseListQuery } from '../../../../shared/query/list/list.ts';
import { parseNames } from '../../../../shared/query/parse/operators.ts';
import { userClass } from '../../../../shared/query/schema.ts';
import { masterViewer, type Viewer } from '../../../../shared/query/viewer.ts';
import type { ClientStorage, StoringCaller } from '../../client-storage.ts';
import type { ApiDeps } from '../../deps.ts';
import { includeSourceFor } from '../../queries/included-objects.ts';
import { isObjectId, requireRead, tokenOpenerFor, type UserCaller, viewerFor } from '../caller.ts';
import type { Sessions } from '../sessions/sessions.ts';

/** Members with contact data. */
const contacts = new Set(['email', 'mobilePhoneNumber']);

/** Maximum number of rows in a reply. */
const maxRows = 100;

/**
 * Checks the rules of a strict query (protocol/users.md#strict-queries) and returns the list to
 * read.
 *
 * - `skip`, subqueries, patterns and members that clients may not read are refused.
 * - The list has at most 100 rows.
 * - Contacts are allowed only if the caller may list users, and must be compared with a whole
 *   value.
 *
 * Throws error 102 with the member and the cause.
 */
function strictQuery(list: ListQuery, { mayListUsers }: { mayListUsers: boolean }): ListQuery {
  const { where, sortOrder, skip, limit } = list;
  if (skip > 0) throw refuse('invalidQuery', 'skip: a strict query starts at the first row.');
  for (const { field } of sortOrder) {
    requireReadable(field.name);
    if (contacts.has(field.name)) throw notWhole(field.name);
  }
  requireStrict(where, mayListUsers);
  return { ...list, limit: Math.min(limit, maxRows) };
}

function requireStrict(condition: Condition, mayListUsers: boolean): void {
  switch (condition.kind) {
    case 'and':
      for (const one of condition.all) requireStrict(one, mayListUsers);
      return;
    case 'or':
      for (const one of condition.any) requireStrict(one, mayListUsers);
      return;
    case 'related':
      return;
    case 'members':
      throw refuse('invalidQuery', 'where: a strict query has no relations.');
    case 'field': {
      const { field, test } = condition;
      const { name } = field;
      requireReadable(name);
      if (test.op === 'subquery')
        throw refuse('invalidQuery', `${name}: a strict query has no subqueries.`);
      if (test.op === 'regex')
        throw refuse('invalidQuery', `${name}: a strict query has no patterns.`);
      if (!contacts.has(name)) return;
      if (!mayListUsers)
        throw refuse(
          'invalidQuery',
          `${name}: a strict query names it only with the option allowUserQuery.`,
        );
      if (test.op !== 'equal' || test.value === null) throw notWhole(name);
    }
  }
}

/** Throws error 102 if clients may not read the member, even if the caller has the master key. */
function requireReadable(name: string): void {
  const [member = ''] = name.split('.');
  if (userClass.hidden?.has(member) || member.startsWith('_'))
    throw refuse('invalidQuery', `${member}: clients may not read this member.`);
}

const notWhole = (name: string) =>
  refuse('invalidQuery', `${name}: a strict query compares it with one whole text only.`);

/** Reply of a list. */
interface UserList {
  results: JsonObject[];
  count?: number;
}

const mayListUsers = ({ app, isMaster }: UserCaller): boolean =>
  isMaster || app.options.allowUserQuery;

/**
 * Reads users (protocol/users.md#reading-users). A session token is returned only to the session
 * itself.
 */
export class UserLookup {
  readonly #deps: Pick<ApiDeps, 'db' | 'queries' | 'vault'>;
  readonly #sessions: Sessions;

  readonly #storage: ClientStorage;

  constructor(
    deps: Pick<ApiDeps, 'db' | 'queries' | 'vault'>,
    { sessions, storage }: { sessions: Sessions; storage: ClientStorage },
  ) {
    this.#deps = deps;
    this.#sessions = sessions;
    this.#storage = storage;
  }

  /**
   * Returns a user. Throws error 211 if the id is unknown, error 403 if the ACL denies the caller,
   * error 116 if the call includes too much.
   */
  async get(
    caller: UserCaller,
    objectId: string,
    query: Record<string, unknown>,
  ): Promise<JsonObject> {
    const keys = parseKeys(query.keys);
    const include = parseInclude(query.include, userClass);
    const { appId } = caller.app;
    const user =
      isObjectId(objectId) && (await findUser(this.#deps.db, appId, { key: { objectId } }));
    if (!user) throw refuse('userNotFound');
    requireRead(caller, user);
    const isOwn = caller.isMaster || caller.session?.id === user.id;
    const view = { isOwn, open: tokenOpenerFor(caller, this.#deps.vault), hasAcl: hasAcl(query) };
    const document = userDocument(user, view);
    const whole =
      include.size === 0
        ? document
        : await this.#deps.queries.readFresh(caller, (db) =>
            resolveInclude(
              document,
              include,
              includeSourceFor(caller, { db, hasAcl: hasAcl(query) }),
            ),
          );
    return { ...project(whole, keys, userClass), ...(await this.#tokenFor(caller, user, query)) };
  }

  /**
   * Returns the token for `include=sessionToken`, if it belongs to the caller's current session.
   * The Java SDK stores this token.
   */
  async #tokenFor(
    { app: { appId }, session }: UserCaller,
    user: User,
    { include }: Record<string, unknown>,
  ): Promise<JsonObject> {
    const isIncluded =
      typeof include === 'string' &&
      parseNames(include, 'include', maxIncludes).includes('sessionToken');
    if (!isIncluded || !session?.hash.equals(user.session.hash)) return {};
    return { sessionToken: await this.#sessions.currentToken(this.#deps.db, appId, user) };
  }

  /**
   * Lists users. Callers need the master key or the app's option `allowUserQuery`. Without the
   * master key, the list contains no third-party accounts, and no users whose ACL denies the
   * caller. Throws error 403 without permission, error 102, 105, 106 or 111 for the query, error
   * 116 if the result is too large, error 124 after a timeout.
   */
  async list(caller: UserCaller, query: Record<string, unknown>): Promise<UserList> {
    if (!mayListUsers(caller)) throw refuse('forbiddenFind');
    return this.#list(caller, query);
  }

  /**
   * Lists users by a strict query (protocol/users.md#strict-queries). The option
   * `allowStrictUserQuery` also permits this. Throws as `list`, and 429 after too many queries from
   * one network address.
   */
  async listStrictly(
    caller: UserCaller & StoringCaller,
    query: Record<string, unknown>,
  ): Promise<UserList> {
    const isAllowed = mayListUsers(caller);
    if (!isAllowed && !caller.app.options.allowStrictUserQuery) throw refuse('forbiddenFind');
    this.#storage.accountOf('strictQueries', caller)?.create(0);
    return this.#list(caller, query, {
      checked: (list) => strictQuery(list, { mayListUsers: isAllowed }),
      // Every class is readable here, so that `strictQuery` refuses each subquery with the same
      // error.
      reader: (reader) => ({ ...reader, classes: masterViewer(reader.appId).classes }),
    });
  }

  #list(
    caller: UserCaller,
    query: Record<string, unknown>,
    {
      checked = (list) => list,
      reader: readerOf = (reader) => reader,
    }: { checked?: (list: ListQuery) => ListQuery; reader?: (reader: Viewer) => Viewer } = {},
  ): Promise<UserList> {
    const reader = readerOf(viewerFor(caller));
    return this.#deps.queries.readPrepared(caller, () => {
      const list = checked(parseListQuery(query, userClass, reader));
      return this.#finder(caller, list, { reader, hasAcl: hasAcl(query) });
    });
  }

  #finder(
    caller: UserCaller,
    list: ListQuery,
    { reader, hasAcl }: { reader: Viewer; hasAcl: boolean },
  ): (tx: Handle) => Promise<UserList> {
    const selection = compileList(list, userClass, reader);
    const view = { isOwn: caller.isMaster, open: tokenOpenerFor(caller, this.#deps.vault), hasAcl };
    return async (tx) => {
      const found = list.limit === 0 ? [] : await selectUsers(tx, selection);
      const documents = found.map((user) => userDocument(user, view));
      const source = includeSourceFor(caller, { db: tx, hasAcl });
      const whole = await resolveIncludes(documents, list.include, source);
      const results = whole.map((document) => project(document, list.keys, userClass));
      return list.hasCount
        ? { results, count: await countRows(tx, 'app_user', selection) }
        : { results };
    };
  }
}

const hasAcl = (query: Record<string, unknown>): boolean => query.returnACL === true;
