import { listPushPage } from '../../../../shared/db/tables/push-reports.ts';
import type { ApiDeps } from '../../deps.ts';
import type { PushTraceService } from '../../push/explain/push-trace.ts';
import { requireApp } from '../apps.ts';

/** Tells what became of the newest pushes at one device (protocol/admin-api.md#devices). */
export class DevicePushService {
  readonly #deps: ApiDeps;
  readonly #traces: PushTraceService;

  constructor(deps: ApiDeps, traces: PushTraceService) {
    this.#deps = deps;
    this.#traces = traces;
  }

  /** Explains the newest `limit` pushes, one after the other: each reads all batches of its push. Throws 404. */
  async list(appId: string, device: string, limit: number) {
    await requireApp(this.#deps, appId);
    const pushes = await listPushPage(this.#deps.db, appId, {}, { before: null, limit });
    const results = [];
    for (const { objectId, createdAt, state } of pushes) {
      const explanation = await this.#traces.explain(appId, objectId, device);
      const { isMatched, outcome, sentence, texts, at } = explanation;
      results.push({ objectId, createdAt, state, isMatched, outcome, at, sentence, texts });
    }
    return { results };
  }
}
