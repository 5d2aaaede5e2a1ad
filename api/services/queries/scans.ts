import { selectInstallations } from '../../../shared/db/tables/installations.ts';
import { selectRoles } from '../../../shared/db/tables/roles.ts';
import { selectUsers } from '../../../shared/db/tables/users.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { installationDocument } from '../../../shared/domain/installations/installation.ts';
import { type Json, type JsonObject, parseJson } from '../../../shared/domain/json.ts';
import { roleDocument } from '../../../shared/domain/roles/role.ts';
import { userDocument } from '../../../shared/domain/users/user.ts';
import { type CqlQuery, parseCql } from '../../../shared/query/cql/select.ts';
import { project } from '../../../shared/query/list/keys.ts';
import { compileScan, cursorAfter, parseScan } from '../../../shared/query/list/scan.ts';
import { classes, roleClass, userClass } from '../../../shared/query/schema.ts';
import { tokenOpenerFor, type UserCaller } from '../accounts/caller.ts';
import type { UserLookup } from '../accounts/lookup/lookup.ts';
import type { ApiDeps } from '../deps.ts';
import type { Caller, InstallationService } from '../installations/installations.ts';
import type { RoleLookup } from '../roles/lookup.ts';

/**
 * Reads all users, installations or roles of an app page by page. Concurrent writes do not shift
 * the pages.
 */
export class ScanService {
  readonly #deps: Pick<ApiDeps, 'queries' | 'clock' | 'vault'>;

  constructor(deps: Pick<ApiDeps, 'queries' | 'clock' | 'vault'>) {
    this.#deps = deps;
  }

  /**
   * Returns a page and the cursor of the next page, or null after the last page
   * (protocol/queries.md#scan). Throws error 101 if the class is unknown, error 116 if the reply is
   * too large, error 124 after a timeout, and as `parseScan`.
   */
  async scan(
    caller: Caller,
    className: string,
    query: Record<string, unknown>,
  ): Promise<{ results: JsonObject[]; cursor: string | null }> {
    const { appId } = caller.app;
    const cls = classes.get(className);
    if (!cls) throw refuse('objectNotFound', "Class or object doesn't exists.");
    const nowMs = this.#deps.clock.now();
    const scan = parseScan(query, cls, { appId, nowMs });
    const selection = compileScan(scan, cls, appId);
    const rows = await this.#deps.queries.read(caller, async (tx) => {
      if (cls === roleClass)
        return (await selectRoles(tx, selection)).map((row) => ({
          row,
          document: roleDocument(row, { hasAcl: false }),
        }));
      if (cls !== userClass)
        return (await selectInstallations(tx, selection)).map((row) => ({
          row,
          document: installationDocument(row, { hasAcl: false, hasSubscription: true }),
        }));
      const users = await selectUsers(tx, selection);
      const open = tokenOpenerFor(caller, this.#deps.vault);
      return users.map((row) => ({ row, document: userDocument(row, { isOwn: true, open }) }));
    });
    const page = rows.slice(0, scan.limit);
    const last = rows.length > scan.limit ? page.at(-1) : undefined;
    return {
      results: page.map(({ document }) => project(document, scan.keys, cls)),
      cursor: last ? cursorAfter(last.row, scan, nowMs) : null,
    };
  }
}

/** Services that list the classes. */
interface ListServices {
  users: UserLookup;
  installations: InstallationService;
  roles: RoleLookup;
}

type ListReply = { results: JsonObject[]; count?: number };

/** Runs list calls that are written as CQL statements (protocol/queries.md#cql). */
export class CloudQueryService {
  readonly #services: ListServices;

  constructor(services: ListServices) {
    this.#services = services;
  }

  /**
   * Runs a CQL statement. Throws error 300 if the statement is invalid, error 101 if the class is
   * unknown, and the refusals of the list.
   */
  async run(
    caller: UserCaller,
    { cql, pvalues }: Record<string, unknown>,
  ): Promise<ListReply & { className: string }> {
    const query = parseCql(cql, valuesIn(pvalues));
    return { ...(await this.#list(caller, query)), className: query.className };
  }

  #list(
    caller: UserCaller,
    { className, hasCount, keys, include, ...query }: CqlQuery,
  ): Promise<ListReply> {
    const list = {
      ...query,
      keys: keys.join(','),
      include: include.join(','),
      ...(hasCount ? { count: true } : {}),
    };
    const { users, installations, roles } = this.#services;
    if (className === '_User') return users.list(caller, list);
    if (className === '_Installation') return installations.list(caller, list);
    if (className === '_Role') return roles.list(caller, list);
    throw refuse('objectNotFound', "Class or object doesn't exists.");
  }
}

/**
 * Decodes a text that was encoded twice for the URL. Such a text begins with `%`, which no JSON
 * text does. Throws a `URIError`.
 */
const unescaped = (text: string): string =>
  text.startsWith('%') ? decodeURIComponent(text) : text;

/**
 * Parses the values of placeholders, which are a JSON list. The Python SDK encodes the list as JSON
 * twice. Throws error 107.
 */
function valuesIn(pvalues: unknown): Json[] {
  if (pvalues === undefined || pvalues === '') return [];
  try {
    const once: unknown = typeof pvalues === 'string' ? parseJson(unescaped(pvalues)) : pvalues;
    const values: unknown = typeof once === 'string' ? parseJson(once) : once;
    if (Array.isArray(values)) return values;
  } catch (error) {
    if (error instanceof Refusal) throw error;
  }
  throw refuse('malformedJson', 'pvalues must be a list.');
}
