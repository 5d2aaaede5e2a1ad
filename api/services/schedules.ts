import { cancelScheduled, listScheduled } from '../../shared/db/tables/schedule.ts';
import type { App } from '../../shared/domain/app.ts';
import { refuse } from '../../shared/domain/errors.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { toScheduledEntry } from '../../shared/domain/schedule.ts';
import type { Means } from './means.ts';

/** Entry ids are a column of type integer. */
const maxEntryId = 2 ** 31 - 1;

/** Pushes that wait for their time (protocol/push.md#scheduled-push-entry). */
export class ScheduleService {
  readonly #means: Means;

  constructor(means: Means) {
    this.#means = means;
  }

  async list(app: App): Promise<JsonObject[]> {
    return (await listScheduled(this.#means.db, app.appId)).map(toScheduledEntry);
  }

  /** Cancels by the outer integer id. Throws 1 for what is no such id, 404/101 when none is pending under it. */
  async cancel(app: App, entryId: string): Promise<void> {
    if (!/^\d{1,10}$/.test(entryId) || Number(entryId) > maxEntryId)
      throw refuse('invalidParameter', 'The id of a scheduled push is the integer that its entry shows.');
    if (!(await cancelScheduled(this.#means.db, app.appId, Number(entryId))))
      throw refuse(
        'objectNotFound',
        'No push is scheduled under this id: it was sent, cancelled, or never was.',
      );
  }
}
