import type { Handle } from '../../../../shared/db/pool.ts';
import {
  countOtherItems,
  deleteSavedItem,
  findSavedItem,
  listSavedItems,
  putSavedItem,
  type SavedItem,
  type SavedKind,
} from '../../../../shared/db/tables/console.ts';
import { findDevice } from '../../../../shared/db/tables/push-reports.ts';
import { itemNameOf } from '../../../../shared/domain/admin/names.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import { Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { mapInTicks } from '../../../../shared/event-loop.ts';
import { withoutCql } from '../../../../shared/query/cql/select.ts';
import { parseWhere } from '../../../../shared/query/parse/where.ts';
import { installationClass } from '../../../../shared/query/schema.ts';
import type { Viewer } from '../../../../shared/query/viewer.ts';
import type { ApiDeps } from '../../deps.ts';
import { askerOf, visibleTo } from '../access/conditions.ts';
import { noSuchApp, requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';

/**
 * Items of each kind that an app may have, the size of one as JSON, and the member that holds its
 * content.
 */
const terms = {
  'push-template': { most: 200, bytes: 16 * 1024, member: 'body' },
  audience: { most: 200, bytes: 16 * 1024, member: 'where' },
  'test-device': { most: 50, bytes: 1024, member: 'installation' },
} as const satisfies Record<SavedKind, { most: number; bytes: number; member: string }>;

/** Item as a caller names it. */
export interface SavedName {
  appId: string;
  kind: SavedKind;
  name: string;
}

/**
 * Stores push templates, audiences and test devices by name (protocol/admin-api.md#saved-items).
 */
export class SavedItemService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists all items of a kind by name. Throws 404 for an unknown app. */
  async list(operator: Operator, appId: string, kind: SavedKind): Promise<JsonObject[]> {
    await requireApp(this.#deps, appId);
    const items = await listSavedItems(this.#deps.db, appId, kind);
    return mapInTicks(items, (item) => shown(operator, kind, item));
  }

  /** Throws 404 when there is no such item. */
  async get(operator: Operator, key: SavedName): Promise<JsonObject> {
    const item = await findSavedItem(this.#deps.db, { ...key, name: key.name.trim() });
    return item ? shown(operator, key.kind, item) : noSuchItem();
  }

  /**
   * Creates or replaces an item. Throws 404 for an unknown app, 1 for a name, 116 for the size, 154
   * for the number of items; the refusals of a condition for an audience, and 404 for a test device
   * that does not exist.
   */
  async put(operator: Operator, key: SavedName, content: Json): Promise<JsonObject> {
    const { appId, kind } = key;
    const item = { appId, kind, name: itemNameOf(key.name) };
    const checked = await this.#check(operator, item, content);
    const { name: updatedBy } = operator;
    const stored = await this.#deps.db.transaction(async (tx) => {
      await this.#requirePlace(tx, item);
      const before = await findSavedItem(tx, item);
      const put = await putSavedItem(tx, item, { content: checked, updatedBy });
      const change = { action: `${kind}.put`, appId, target: item.name };
      const old = before ? { before: contentOf(kind, before) } : {};
      await recordChange(tx, { ...change, ...old, after: contentOf(kind, put) });
      return put;
    });
    return shown(operator, kind, stored);
  }

  /** Throws 404 when there is no such item. */
  async delete(key: SavedName): Promise<void> {
    const { appId, kind } = key;
    const item = { appId, kind, name: key.name.trim() };
    const isDeleted = await this.#deps.db.transaction(async (tx) => {
      const deleted = await deleteSavedItem(tx, item);
      const change = { action: `${kind}.delete`, appId, target: item.name };
      if (deleted) await recordChange(tx, { ...change, before: contentOf(kind, deleted) });
      return deleted !== undefined;
    });
    if (!isDeleted) noSuchItem();
  }

  /** Returns the content to store. */
  async #check(operator: Operator, { appId, kind }: SavedName, content: Json): Promise<Json> {
    const { bytes } = terms[kind];
    if (Buffer.byteLength(JSON.stringify(content)) > bytes)
      throw refuse('tooLarge', detail('bytesAsJson', { bytes }));
    const asker = askerOf(operator, appId);
    if (kind === 'audience') parseWhere(content, installationClass, asker);
    if (kind === 'push-template') checkTemplate(content, asker);
    if (kind !== 'test-device') return content;
    const named = String(content);
    // PostgreSQL refuses NUL, so no device has such an id.
    const device = named.includes('\0') ? undefined : await findDevice(this.#deps.db, appId, named);
    if (!device) throw refuse('notFound', detail('noInstallation'));
    return device.object_id;
  }

  /** Throws 154 when the app has as many items as it may. */
  async #requirePlace(tx: Handle, item: SavedName): Promise<void> {
    const { most } = terms[item.kind];
    const others = (await countOtherItems(tx, item)) ?? noSuchApp();
    if (others >= most) throw refuse('thresholdExceeded', detail('atMostSaved', { n: most }));
  }
}

function noSuchItem(): never {
  throw refuse('notFound', detail('nothingNamed'));
}

/**
 * Checks the condition of a template as that of a push. A template may be unfinished, so other
 * refusals of its condition come when it is sent. Throws 403 for a condition that the caller may
 * not ask.
 */
function checkTemplate(content: Json, asker: Viewer): void {
  try {
    const { where } = withoutCql(isJsonObject(content) ? content : {});
    parseWhere(where, installationClass, asker);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status === 403) throw error;
  }
}

const contentOf = (kind: SavedKind, { content }: SavedItem): JsonObject => ({
  [terms[kind].member]: content,
});

/** Returns an item for a caller; tokens in it are shortened below operator. */
function shown(operator: Operator, kind: SavedKind, item: SavedItem): JsonObject {
  const content = contentOf(kind, item);
  const { name, updatedAt, updatedBy } = item;
  return { name, ...visibleTo(operator, content), updatedAt: updatedAt.toISOString(), updatedBy };
}
