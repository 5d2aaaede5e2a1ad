import { sampleChannels, sampleFields } from '../../../../shared/db/tables/audience.ts';
import { hasRole, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { isHiddenMember } from '../../../../shared/domain/admin/shortened.ts';
import { installationClass } from '../../../../shared/query/schema.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';

/** Time limit of a sample. */
const timeoutMs = 2000;

/** Built-in members that an index serves. Custom members share one. */
const indexed = new Set(['deviceType', 'vendor', 'channels']);

/** Suggests members and values for a condition, from the newest devices of an app (protocol/admin-api.md#suggestions). */
export class SuggestionService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Throws 404 for an unknown app, 124 where the sample takes too long. */
  async fields({ role }: Operator, appId: string, prefix: string) {
    const app = await requireApp(this.#deps, appId);
    const found = await this.#deps.queries.read(
      { app, isMaster: true },
      (tx) => sampleFields(tx, appId, prefix),
      { timeoutMs },
    );
    return found.map((field) => ({
      ...field,
      values: hasRole(role, 'operator') || !isHiddenMember(field.name) ? field.values : [],
      isIndexed: indexed.has(field.name) || !installationClass.columns.has(field.name),
    }));
  }

  /** Throws as `fields`. */
  async channels(appId: string, prefix: string) {
    const app = await requireApp(this.#deps, appId);
    return this.#deps.queries.read({ app, isMaster: true }, (tx) => sampleChannels(tx, appId, prefix), {
      timeoutMs,
    });
  }
}
