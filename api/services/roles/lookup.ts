import { findRole, selectRoles } from '../../../shared/db/tables/roles.ts';
import { countRows } from '../../../shared/db/tables/selection.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../shared/domain/json.ts';
import { roleDocument } from '../../../shared/domain/roles/role.ts';
import {
  parseInclude,
  resolveInclude,
  resolveIncludes,
} from '../../../shared/query/list/include.ts';
import { parseKeys, project } from '../../../shared/query/list/keys.ts';
import { compileList, parseListQuery } from '../../../shared/query/list/list.ts';
import { findRelation } from '../../../shared/query/parse/related.ts';
import { roleClass } from '../../../shared/query/schema.ts';
import { isObjectId, requireRead, type UserCaller, viewerFor } from '../accounts/caller.ts';
import type { UserLookup } from '../accounts/lookup/lookup.ts';
import type { ApiDeps } from '../deps.ts';
import { includeSourceFor } from '../queries/included-objects.ts';

type Query = Record<string, unknown>;
type Found = { results: JsonObject[]; count?: number };

/** Reads roles. Any caller with a key reads the roles whose ACL allows it. */
export class RoleLookup {
  readonly #deps: Pick<ApiDeps, 'db' | 'queries'>;
  readonly #users: Pick<UserLookup, 'list'>;

  constructor(deps: Pick<ApiDeps, 'db' | 'queries'>, users: Pick<UserLookup, 'list'>) {
    this.#deps = deps;
    this.#users = users;
  }

  /**
   * Returns a role, or `{}` if the id is unknown (protocol/queries.md#reads-by-id). Throws error
   * 403 if the ACL denies the caller, error 102 or 105 if `keys` or `include` is invalid, error 116
   * if the reply is too large.
   */
  async get(caller: UserCaller, objectId: string, query: Query): Promise<JsonObject> {
    const keys = parseKeys(query.keys);
    const include = parseInclude(query.include, roleClass);
    const { appId } = caller.app;
    const role = isObjectId(objectId) && (await findRole(this.#deps.db, appId, { objectId }));
    if (!role) return {};
    requireRead(caller, role);
    const document = roleDocument(role, { hasAcl: hasAcl(query) });
    if (include.size === 0) return project(document, keys, roleClass);
    const whole = await this.#deps.queries.readFresh(caller, (db) =>
      resolveInclude(document, include, includeSourceFor(caller, { db, hasAcl: hasAcl(query) })),
    );
    return project(whole, keys, roleClass);
  }

  /**
   * Lists roles (GET of the collection). With `redirectClassNameForKey`, which names a relation,
   * lists the members of the relation. SDKs send it if they do not know the class of the members,
   * and read the class from the reply. A `$relatedTo` for members of another class has the same
   * effect, because the SDK does not know the class for a new role. Throws error 102, 105, 106 or
   * 111 for the query, error 116 if the reply is too large, error 124 after a timeout, and as the
   * list of the members' class.
   */
  async list(caller: UserCaller, query: Query): Promise<Found & { className?: string }> {
    const { redirectClassNameForKey: named } = query;
    const key = named === undefined || named === '' ? relatedKey(query.where) : named;
    if (key === undefined) return this.#list(caller, query);
    const relation = typeof key === 'string' ? findRelation(roleClass, key) : undefined;
    if (!relation)
      throw refuse('invalidQuery', 'redirectClassNameForKey names no relation of this class.');
    const { className } = relation;
    const found =
      className === roleClass.name
        ? await this.#list(caller, query)
        : await this.#users.list(caller, query);
    return { ...found, className };
  }

  #list(caller: UserCaller, query: Query): Promise<Found> {
    const reader = viewerFor(caller);
    return this.#deps.queries.readPrepared(caller, () => {
      const list = parseListQuery(query, roleClass, reader);
      const selection = compileList(list, roleClass, reader);
      return async (tx) => {
        const found = list.limit === 0 ? [] : await selectRoles(tx, selection);
        const documents = found.map((role) => roleDocument(role, { hasAcl: hasAcl(query) }));
        const source = includeSourceFor(caller, { db: tx, hasAcl: hasAcl(query) });
        const whole = await resolveIncludes(documents, list.include, source);
        const results = whole.map((document) => project(document, list.keys, roleClass));
        return list.hasCount
          ? { results, count: await countRows(tx, 'role', selection) }
          : { results };
      };
    });
  }
}

/**
 * Returns the relation of a condition that selects members of another class from a role. Returns
 * undefined for other conditions.
 */
function relatedKey(where: unknown): string | undefined {
  const condition = typeof where === 'string' ? readText(where) : where;
  const { $relatedTo: operand } = isJsonObject(condition) ? condition : {};
  const { object, key } = isJsonObject(operand) ? operand : {};
  const isOfRole = isJsonObject(object) && object.className === roleClass.name;
  const relation = isOfRole && typeof key === 'string' ? findRelation(roleClass, key) : undefined;
  return relation && relation.className !== roleClass.name && typeof key === 'string'
    ? key
    : undefined;
}

/** Parses a condition. Returns undefined if the text is not JSON. The list then refuses it. */
function readText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const hasAcl = (query: Query): boolean => query.returnACL === true;
