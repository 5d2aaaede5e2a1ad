import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { type Json, type JsonObject, parseJson } from '../../../shared/domain/json.ts';
import { type CqlQuery, parseCql } from '../../../shared/query/cql/select.ts';
import type { UserCaller } from '../accounts/caller.ts';
import type { UserLookup } from '../accounts/lookup/lookup.ts';
import type { InstallationService } from '../installations/installations.ts';
import type { RoleLookup } from '../roles/lookup.ts';

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
