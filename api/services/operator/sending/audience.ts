import { Router } from '../../../../connectors/routing.ts';
import { isStatementTimeout } from '../../../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  countAudience,
  countUnmet,
  type DeviceGroup,
} from '../../../../shared/db/tables/audience.ts';
import { selectInstallations } from '../../../../shared/db/tables/installations.ts';
import type { Operator } from '../../../../shared/domain/admin/operator.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { installationDocument } from '../../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { detail, replyText, writeText } from '../../../../shared/domain/texts/texts.ts';
import { Params, targetClauses, targetsOf } from '../../../../shared/query/targets/targets.ts';
import { Semaphore } from '../../../../shared/semaphore.ts';
import type { ApiDeps } from '../../deps.ts';
import { planOf, splitByConnector } from '../../push/explain/audience.ts';
import { parseDraft } from '../../push/explain/dry-run.ts';
import { operatorViewer, visibleTo } from '../access/member-rights.ts';
import { requireApp } from '../apps.ts';
import type { ReadAudit } from '../audit/audit.ts';
import { plainPush } from '../devices/devices.ts';

/**
 * Time limits of the statements of one count, about two seconds in total: the exact count, the
 * partial count after it, and each other statement.
 */
const exactMs = 1300;
const partMs = 300;
const detailMs = 300;
/**
 * Maximum number of devices that a partial count reads. It is used if the exact count takes too
 * long.
 */
const maxPart = 100_000;
/** Maximum number of clauses that are counted separately. */
const maxClauses = 20;
/** Limits of concurrent counts in total and per app, and of waiting counts per app. */
const countLimits = { concurrency: 3, perKey: 1, maxWaiting: 5, maxWaitMs: 2000 };

/** Target whose audience is counted: members of a push body. */
export interface AudienceRequest {
  target: JsonObject;
  /** Number of devices to show. */
  sample: number;
  /** True to count the audience without each clause. */
  clauses: boolean;
  prodHeader: 'dev' | 'prod' | undefined;
  disconnected: AbortSignal;
}

/** Data that the statements of one count need. */
interface Count {
  app: App;
  pushOrder: PushOrder;
  nowMs: number;
  disconnected: AbortSignal;
}

/**
 * Counts the devices of a condition while a user types it (protocol/admin-api.md#audience). All
 * statements are READ ONLY.
 */
export class AudienceService {
  readonly #deps: ApiDeps;
  readonly #reads: ReadAudit;
  readonly #queue = new Semaphore(countLimits);

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
  }

  /**
   * Counts the devices in total and by connector. If the exact count takes too long, returns a
   * lower bound with `isLeast`. Throws error 404 if the app does not exist, the refusals of a push
   * for its target, error 403 if the role may not use the condition, error 429 if too many counts
   * run, error 408 if the caller disconnects.
   */
  async count(operator: Operator, appId: string, request: AudienceRequest) {
    const { clock } = this.#deps;
    const app = await requireApp(this.#deps, appId);
    const nowMs = clock.now();
    const { target, prodHeader, disconnected } = request;
    const viewer = operatorViewer(operator, appId);
    const draft = { body: { ...target, data: {} }, bodyBytes: 0, prodHeader };
    const { pushOrder } = parseDraft(viewer, draft, nowMs);
    const startedMs = clock.monotonicMs();
    const count = { app, pushOrder, nowMs, disconnected };
    try {
      const report = await this.#queue.run(appId, () => this.#report(operator, count, request));
      await this.#reads.record({
        action: 'audience.count',
        appId,
        target: appId,
        members: viewer.personal,
      });
      return { ...report, tookMs: Math.round(clock.monotonicMs() - startedMs) };
    } catch (error) {
      if (disconnected.aborted) throw refuse('requestTimeout', detail('callerGone'));
      throw error;
    }
  }

  async #report(operator: Operator, count: Count, { sample, clauses }: AudienceRequest) {
    const { app, pushOrder, nowMs } = count;
    const targets = targetsOf(app, pushOrder, nowMs);
    const exact = await this.#read(count, exactMs, (tx) => countAudience(tx, targets));
    const part =
      exact ?? (await this.#read(count, partMs, (tx) => countAudience(tx, targets, maxPart)));
    const { groups, devices } = part ?? { groups: [], devices: 0 };
    const sampled =
      sample === 0 ? [] : await this.#read(count, detailMs, (tx) => sampleOf(tx, count, sample));
    const plan = await this.#read(count, detailMs, (tx) =>
      planOf(tx, app, { pushOrder, nowMs, devices }),
    );
    return {
      devices,
      isLeast: exact === undefined,
      ...(await this.#split(app, pushOrder, groups)),
      sample: (sampled ?? []).map((document) => visibleTo(operator, document)),
      ...(clauses ? { clauses: await this.#clauses(count, exact?.devices) } : {}),
      ...(plan?.warning === undefined
        ? {}
        : {
            warning: writeText('forecasts', plan.warning, 'en'),
            warningText: replyText(plan.warning),
          }),
    };
  }

  /** Reads in one snapshot. Returns undefined after the timeout. */
  async #read<T>(
    { app, disconnected }: Count,
    timeoutMs: number,
    work: (tx: Handle) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await this.#deps.queries.read({ app, isMaster: true }, work, {
        timeoutMs,
        signal: disconnected,
      });
    } catch (error) {
      if (isStatementTimeout(error)) return undefined;
      throw error;
    }
  }

  async #split(app: App, pushOrder: PushOrder, groups: DeviceGroup[]) {
    const { appCache, clock } = this.#deps;
    const push = { ...plainPush(clock.now()), pushOrder };
    const shares = splitByConnector(
      groups,
      new Router(app, await appCache.profiles(app.appId), push),
    );
    const problems: Record<string, number> = {};
    for (const share of shares.values())
      for (const [error, n] of share.problems) {
        const problem = reasonText(error);
        problems[problem] = (problems[problem] ?? 0) + n;
      }
    const connectors = Object.fromEntries([...shares].map(([id, share]) => [id, share.devices]));
    return { connectors, problems };
  }

  /**
   * Returns the clauses of the condition, each with the number of devices without it. The number is
   * null if counting takes too long.
   */
  async #clauses(count: Count, devices: number | undefined) {
    const { app, pushOrder, nowMs } = count;
    const params = new Params([app.appId]);
    const clauses = targetClauses(app, pushOrder, { params, nowMs });
    const isCounted = devices !== undefined && clauses.length <= maxClauses;
    const conditions = clauses.map(({ condition }) => condition);
    const unmet = isCounted
      ? await this.#read(count, exactMs, (tx) => countUnmet(tx, conditions, params.values))
      : undefined;
    return clauses.map(({ kind, text }, i) => ({
      kind,
      text,
      without: devices === undefined || !unmet ? null : devices + (unmet[i] ?? 0),
    }));
  }
}

async function sampleOf(
  tx: Handle,
  { app, pushOrder, nowMs }: Count,
  limit: number,
): Promise<JsonObject[]> {
  const params = new Params([app.appId]);
  const { text: condition, values } = targetsOf(app, pushOrder, nowMs, params);
  const order = { orderBy: 'id DESC', conditionValues: values.length, skip: 0 };
  const rows = await selectInstallations(tx, { condition, values, limit, ...order });
  return rows.map((row) => installationDocument(row, { hasAcl: true, hasSubscription: false }));
}
