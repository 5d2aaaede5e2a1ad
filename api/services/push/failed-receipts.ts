import {
  deleteFailedReceipts,
  listFailedReceipts,
  readFailedReceipts,
} from '../../../shared/db/tables/receipts.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';
import { recordChange } from '../operator/audit/actor.ts';
import { type PageRequest, toPage } from '../operator/lists/page.ts';
import type { ReceiptService } from './receipts.ts';
import { openRefusedCall } from './refused-calls.ts';

/** Refused calls that one call reads again. */
const maxCalls = 50;

/** Selection of refused calls, and where a call before ended. */
export interface ReceiptRedrive {
  connector?: string | undefined;
  cursor?: number | undefined;
}

/** Receipts of gateways that could not be processed (protocol/admin-api.md#failed-receipts). */
export class FailedReceiptService {
  readonly #deps: ApiDeps;
  readonly #receipts: ReceiptService;

  constructor(deps: ApiDeps, receipts: ReceiptService) {
    this.#deps = deps;
    this.#receipts = receipts;
  }

  /** Lists refused calls, newest first, without their content. Throws 404. */
  async list(appId: string, { connector, before, limit }: { connector?: string | undefined } & PageRequest) {
    await requireApp(this.#deps, appId);
    const page = { before, limit: limit + 1 };
    const rows = await listFailedReceipts(this.#deps.db, appId, connector, page);
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(({ id, ...row }) => ({ id: String(id), ...row })), next };
  }

  /**
   * Reads refused calls again with the credentials of now, the oldest first, at most 50, and deletes those that were processed.
   * A receipt counts once, however often its call is read. `isDryRun` counts only. Throws 404.
   */
  async redrive(
    appId: string,
    { connector, cursor = 0 }: ReceiptRedrive,
    { isDryRun }: { isDryRun: boolean },
  ) {
    await requireApp(this.#deps, appId);
    const { db } = this.#deps;
    const calls = await readFailedReceipts(db, appId, connector, { after: cursor, limit: maxCalls });
    const taken: number[] = [];
    for (const { id, connector: of, ...sealed } of calls) {
      const source = { appId, connector: of };
      const call = openRefusedCall(this.#deps, source, sealed);
      const result = call && (await this.#receipts.read(source, call));
      if (!result?.ok) continue;
      if (!isDryRun) await this.#receipts.take(source, result.receipts);
      taken.push(id);
    }
    if (!isDryRun && taken.length > 0)
      await db.transaction(async (tx) => {
        await deleteFailedReceipts(tx, appId, taken);
        const after = { processed: taken.length };
        await recordChange(tx, { action: 'receipts.redrive', appId, target: connector ?? 'all', after });
      });
    const last = calls.length < maxCalls ? undefined : calls.at(-1);
    return {
      processed: taken.length,
      refused: calls.length - taken.length,
      next: last === undefined ? null : String(last.id),
    };
  }
}
