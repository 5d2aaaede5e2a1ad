import { refuse } from '../../../shared/domain/errors/errors.ts';
import { type Json, type JsonObject, parseJson } from '../../../shared/domain/json.ts';
import { type CqlQuery, parseCql } from '../../../shared/query/cql/cql.ts';
import type { UserCaller } from '../accounts/caller.ts';
import type { UserLookup } from '../accounts/lookup/lookup.ts';
import type { InstallationService } from '../installations/installations.ts';
import type { RoleLookup } from '../roles/lookup.ts';

interface Parts {
  users: UserLookup;
  installations: InstallationService;
  roles: RoleLookup;
}

type Found = { results: JsonObject[]; count?: number };

/** List calls written as statements (protocol/queries.md#cql). */
export class CloudQueryService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Throws 300 for a statement that is none, 101 for an unknown class, and as the lists of the classes. */
  async run(
    caller: UserCaller,
    { cql, pvalues }: Record<string, unknown>,
  ): Promise<Found & { className: string }> {
    const query = parseCql(cql, valuesIn(pvalues));
    return { ...(await this.#list(caller, query)), className: query.className };
  }

  #list(caller: UserCaller, { className, hasCount, keys, include, ...query }: CqlQuery): Promise<Found> {
    const list = {
      ...query,
      keys: keys.join(','),
      include: include.join(','),
      ...(hasCount ? { count: '1' } : {}),
    };
    const { users, installations, roles } = this.#parts;
    if (className === '_User') return users.list(caller, list, { isStrict: false });
    if (className === '_Installation') return installations.list(caller, list);
    if (className === '_Role') return roles.list(caller, list);
    throw refuse('objectNotFound', "Class or object doesn't exists.");
  }
}

/** No JSON begins with `%`: what does was encoded for the URL twice. Throws a `URIError`. */
const unescaped = (text: string): string => (text.startsWith('%') ? decodeURIComponent(text) : text);

/** The values of placeholders: a JSON list; the Python SDK sends it as JSON of JSON. Throws 107. */
function valuesIn(pvalues: unknown): Json[] {
  if (pvalues === undefined || pvalues === '') return [];
  try {
    const once: unknown = typeof pvalues === 'string' ? parseJson(unescaped(pvalues)) : pvalues;
    const values: unknown = typeof once === 'string' ? parseJson(once) : once;
    if (Array.isArray(values)) return values;
  } catch {
    // What was wrong with it is the same to the caller.
  }
  throw refuse('malformedJson', 'pvalues must be a list.');
}
