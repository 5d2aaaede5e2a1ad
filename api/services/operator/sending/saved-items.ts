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
import { operatorViewer, visibleTo } from '../access/member-rights.ts';
import { noSuchApp, requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';

/**
 * For each kind: the maximum number of items per app, the maximum size of an item as JSON, and the
 * member with its content.
 */
const limits = {
  'push-template': { maxItems: 200, bytes: 16 * 1024, member: 'body' },
  audience: { maxItems: 200, bytes: 16 * 1024, member: 'where' },
  'test-device': { maxItems: 50, bytes: 1024, member: 'installation' },
} as const satisfies Record<SavedKind, { maxItems: number; bytes: number; member: string }>;

/** Item as identified by a caller. */
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

  /** Lists all items of a kind, sorted by name. Throws error 404 if the app does not exist. */
  async list(operator: Operator, appId: string, kind: SavedKind): Promise<JsonObject[]> {
    await requireApp(this.#deps, appId);
    const items = await listSavedItems(this.#deps.db, appId, kind);
    return mapInTicks(items, (item) => toReply(operator, kind, item));
  }

  /** Returns an item. Throws error 404 if it does not exist. */
  async get(operator: Operator, key: SavedName): Promise<JsonObject> {
    const item = await findSavedItem(this.#deps.db, { ...key, name: key.name.trim() });
    return item ? toReply(operator, key.kind, item) : noSuchItem();
  }

  /**
   * Creates or replaces an item. Throws error 404 if the app or the test device does not exist,
   * error 1 if the name is invalid, error 116 if the item is too large, error 154 if there are too
   * many items. For an audience, also throws the refusals of its condition.
   */
  async put(operator: Operator, key: SavedName, content: Json): Promise<JsonObject> {
    const { appId, kind } = key;
    const item = { appId, kind, name: itemNameOf(key.name) };
    const checked = await this.#check(operator, item, content);
    const { name: updatedBy } = operator;
    const stored = await this.#deps.db.transaction(async (tx) => {
      await this.#requireRoom(tx, item);
      const before = await findSavedItem(tx, item);
      const put = await putSavedItem(tx, item, { content: checked, updatedBy });
      const change = { action: `${kind}.put`, appId, target: item.name };
      const old = before ? { before: contentOf(kind, before) } : {};
      await recordChange(tx, { ...change, ...old, after: contentOf(kind, put) });
      return put;
    });
    return toReply(operator, kind, stored);
  }

  /** Deletes an item. Throws error 404 if it does not exist. */
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

  /** Checks the content and returns it in the form in which it is stored. */
  async #check(operator: Operator, { appId, kind }: SavedName, content: Json): Promise<Json> {
    const { bytes } = limits[kind];
    if (Buffer.byteLength(JSON.stringify(content)) > bytes)
      throw refuse('tooLarge', detail('bytesAsJson', { bytes }));
    const viewer = operatorViewer(operator, appId);
    if (kind === 'audience') parseWhere(content, installationClass, viewer);
    if (kind === 'push-template') checkTemplate(content, viewer);
    if (kind !== 'test-device') return content;
    const named = String(content);
    // PostgreSQL refuses NUL, so no device has such an id.
    const device = named.includes('\0') ? undefined : await findDevice(this.#deps.db, appId, named);
    if (!device) throw refuse('notFound', detail('noInstallation'));
    return device.object_id;
  }

  /** Throws error 154 if the app has the maximum number of items. */
  async #requireRoom(tx: Handle, item: SavedName): Promise<void> {
    const { maxItems } = limits[item.kind];
    const others = (await countOtherItems(tx, item)) ?? noSuchApp();
    if (others >= maxItems)
      throw refuse('thresholdExceeded', detail('atMostSaved', { n: maxItems }));
  }
}

function noSuchItem(): never {
  throw refuse('notFound', detail('nothingNamed'));
}

/**
 * Checks the condition of a template as for a push. A template may be unfinished, so only a
 * condition that the caller may not use is refused, with 403. Other errors are reported when the
 * template is sent.
 */
function checkTemplate(content: Json, viewer: Viewer): void {
  try {
    const { where } = withoutCql(isJsonObject(content) ? content : {});
    parseWhere(where, installationClass, viewer);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status === 403) throw error;
  }
}

const contentOf = (kind: SavedKind, { content }: SavedItem): JsonObject => ({
  [limits[kind].member]: content,
});

/** Returns an item for a caller. Tokens in it are shortened below the role operator. */
function toReply(operator: Operator, kind: SavedKind, item: SavedItem): JsonObject {
  const content = contentOf(kind, item);
  const { name, updatedAt, updatedBy } = item;
  return { name, ...visibleTo(operator, content), updatedAt: updatedAt.toISOString(), updatedBy };
}
