import { cancelScheduled, listScheduled } from '../../../shared/db/tables/scheduled-pushes.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { toScheduledEntry } from '../../../shared/domain/pushes/schedule.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';

/** Largest id of an entry: the column is an integer. */
const maxEntryId = 2 ** 31 - 1;

/** Lists and cancels scheduled pushes (protocol/push.md#scheduled-push-entry). */
export class ScheduleService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  async list(app: App): Promise<JsonObject[]> {
    return (await listScheduled(this.#deps.db, app.appId)).map(toScheduledEntry);
  }

  /** Cancels by the outer integer id. Throws 1 for a malformed id, 404/101 when no push is pending under it. */
  async cancel(app: App, entryId: string): Promise<void> {
    if (!(await cancelScheduled(this.#deps.db, app.appId, entryIdOf(entryId)))) noSuchEntry();
  }
}

/** Parses the id of an entry. Throws 1 for another text. */
export function entryIdOf(text: string): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > maxEntryId)
    throw refuse('invalidParameter', detail('scheduledId'));
  return Number(text);
}

export function noSuchEntry(): never {
  throw refuse('objectNotFound', detail('notScheduled'));
}
