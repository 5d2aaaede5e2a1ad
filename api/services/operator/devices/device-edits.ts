import { deleteMatching, listMatching } from '../../../../shared/db/tables/installations.ts';
import { findDevice } from '../../../../shared/db/tables/push-reports.ts';
import type { RowCondition } from '../../../../shared/db/tables/selection.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { type Detail, detail } from '../../../../shared/domain/texts/texts.ts';
import { compileRowCondition } from '../../../../shared/query/list/list.ts';
import { installationClass } from '../../../../shared/query/schema.ts';
import type { ApiDeps } from '../../deps.ts';
import type { InstallationService } from '../../installations/installations.ts';
import { askerOf } from '../access/conditions.ts';
import { requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';

/** Installations of one deletion: their keys are in memory. */
export const maxDeleted = 100_000;
/** Installations that one transaction deletes. */
const deletedAtOnce = 1000;

/** Changes and deletes installations for operators (protocol/admin-api.md#devices). */
export class DeviceEditService {
  readonly #deps: ApiDeps;
  readonly #installations: Pick<InstallationService, 'update' | 'delete'>;

  constructor(deps: ApiDeps, installations: Pick<InstallationService, 'update' | 'delete'>) {
    this.#deps = deps;
    this.#installations = installations;
  }

  /** Writes members, as PUT with the master key does. Throws 404, and the refusals of `InstallationService.update`. */
  async update(appId: string, name: string, body: JsonObject): Promise<JsonObject> {
    const app = await requireApp(this.#deps, appId);
    const objectId = await this.#require(appId, name);
    const { document } = await this.#installations.update(
      { app, isMaster: true, session: undefined, remoteAddress: '' },
      objectId,
      {
        body,
        where: undefined,
      },
    );
    return document;
  }

  /** Throws 404 when there is no such app or device. */
  async delete(appId: string, name: string): Promise<void> {
    const app = await requireApp(this.#deps, appId);
    const objectId = await this.#require(appId, name);
    await this.#installations.delete({ app, isMaster: true, session: undefined }, objectId, undefined);
  }

  /**
   * Deletes all installations that meet a condition, if there are `expected` of them: the caller was shown this number.
   * Deletes in steps; those that no longer meet the condition in their step stay. Returns the number that were deleted.
   * Throws 404, 409 for another number, 102 and 105 for the condition, 124.
   */
  async deleteAll(
    operator: Operator,
    appId: string,
    { where, expected }: { where: JsonObject; expected: number },
  ): Promise<number> {
    const app = await requireApp(this.#deps, appId);
    const condition = compileRowCondition(where, installationClass, askerOf(operator, appId));
    if (!condition) throw refuse('invalidQuery');
    const asker = { app, isMaster: true };
    const ids = await this.#deps.queries.readFresh(asker, (tx) => listMatching(tx, condition, expected + 1));
    if (ids.length !== expected) throw refuse('conflict', countText(ids.length, expected));
    ids.sort((a, b) => a - b);
    let deleted = 0;
    for (let from = 0; from < ids.length; from += deletedAtOnce)
      deleted += await this.#deleteSome(app, {
        condition,
        ids: ids.slice(from, from + deletedAtOnce),
        where,
      });
    return deleted;
  }

  /** Deletes one step in a transaction of its own, with its entry in the audit. */
  #deleteSome(
    app: App,
    { condition, ids, where }: { condition: RowCondition; ids: number[]; where: JsonObject },
  ): Promise<number> {
    return this.#deps.queries.change({ app, isMaster: true }, async (tx) => {
      const deleted = await deleteMatching(tx, condition, ids);
      const { appId } = app;
      const change = { action: 'installation.delete-all', appId, target: appId };
      if (deleted > 0) await recordChange(tx, { ...change, before: { where }, after: { deleted } });
      return deleted;
    });
  }

  /** Returns the object id of a device by any of its ids. */
  async #require(appId: string, name: string): Promise<string> {
    // PostgreSQL refuses NUL, so no device has such an id.
    const found = name.includes('\0') ? undefined : await findDevice(this.#deps.db, appId, name);
    if (!found) throw refuse('notFound', detail('noInstallation'));
    return found.object_id;
  }
}

const countText = (found: number, expected: number): Detail =>
  found > expected ? detail('moreMatch', { n: expected }) : detail('othersMatch', { found, expected });
