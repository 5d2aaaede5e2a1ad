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
import {
  Params,
  targetClauses,
  targetCondition,
} from '../../../../shared/query/targets/targets.ts';
import { Semaphore } from '../../../../shared/semaphore.ts';
import type { ApiDeps } from '../../deps.ts';
import { planOf, splitByConnector } from '../../push/explain/audience.ts';
import { parseDraft } from '../../push/explain/dry-run.ts';
import { askerOf, visibleTo } from '../access/conditions.ts';
import { requireApp } from '../apps.ts';
import type { ReadAudit } from '../audit/audit.ts';
import { plainPush } from '../devices/devices.ts';

/**
 * Limits of the statements of one count, two seconds in all: the exact one, a part of the devices
 * after it, and each of the others.
 */
const exactMs = 1300;
const partMs = 300;
const detailMs = 300;
/** Devices that are counted where an exact count takes too long. */
const maxPart = 100_000;
/** Clauses that are counted without each other. */
const maxClauses = 20;
/** Counts at the same time: of all apps, of one app, and of one app that wait. */
const turns = { concurrency: 3, perKey: 1, maxWaiting: 5, maxWaitMs: 2000 };

/** Target whose audience is counted: members of the body of a push. */
export interface AudienceRequest {
  target: JsonObject;
  /** Number of devices to show. */
  sample: number;
  /** Whether to count without each clause. */
  clauses: boolean;
  prodHeader: 'dev' | 'prod' | undefined;
  gone: AbortSignal;
}

/** Everything that the statements of one count need. */
interface Count {
  app: App;
  pushOrder: PushOrder;
  nowMs: number;
  gone: AbortSignal;
}

/**
 * Counts the devices of a condition while somebody writes it (protocol/admin-api.md#audience). All
 * statements are READ ONLY.
 */
export class AudienceService {
  readonly #deps: ApiDeps;
  readonly #reads: ReadAudit;
  readonly #turns = new Semaphore(turns);

  constructor(deps: ApiDeps, reads: ReadAudit) {
    this.#deps = deps;
    this.#reads = reads;
  }

  /**
   * Returns the devices in all and by connector; a lower bound with `isLeast` where the exact count
   * takes too long. Throws 404, the refusals of a push for its target, 403 for a condition that the
   * role may not ask, 429, and 408 when the caller is gone.
   */
  async count(operator: Operator, appId: string, request: AudienceRequest) {
    const { clock } = this.#deps;
    const app = await requireApp(this.#deps, appId);
    const nowMs = clock.now();
    const { target, prodHeader, gone } = request;
    const asker = askerOf(operator, appId);
    const draft = { body: { ...target, data: {} }, bodyBytes: 0, prodHeader };
    const { pushOrder } = parseDraft(asker, draft, nowMs);
    const startedMs = clock.monotonicMs();
    const count = { app, pushOrder, nowMs, gone };
    try {
      const report = await this.#turns.run(appId, () => this.#report(operator, count, request));
      await this.#reads.note({
        action: 'audience.count',
        appId,
        target: appId,
        members: asker.personal,
      });
      return { ...report, tookMs: Math.round(clock.monotonicMs() - startedMs) };
    } catch (error) {
      if (gone.aborted) throw refuse('requestTimeout', detail('callerGone'));
      throw error;
    }
  }

  async #report(operator: Operator, count: Count, { sample, clauses }: AudienceRequest) {
    const { app, pushOrder, nowMs } = count;
    const exact = await this.#read(count, exactMs, (tx) => countAudience(tx, conditionOf(count)));
    const part =
      exact ??
      (await this.#read(count, partMs, (tx) => countAudience(tx, conditionOf(count), maxPart)));
    const { groups, devices } = part ?? { groups: [], devices: 0 };
    const shown =
      sample === 0 ? [] : await this.#read(count, detailMs, (tx) => sampleOf(tx, count, sample));
    const plan = await this.#read(count, detailMs, (tx) =>
      planOf(tx, app, { pushOrder, nowMs, devices }),
    );
    return {
      devices,
      isLeast: exact === undefined,
      ...(await this.#split(app, pushOrder, groups)),
      sample: (shown ?? []).map((document) => visibleTo(operator, document)),
      ...(clauses ? { clauses: await this.#clauses(count, exact?.devices) } : {}),
      ...(plan?.warning === undefined
        ? {}
        : {
            warning: writeText('forecasts', plan.warning, 'en'),
            warningText: replyText(plan.warning),
          }),
    };
  }

  /** Reads in one snapshot; undefined where it takes longer. */
  async #read<T>(
    { app, gone }: Count,
    timeoutMs: number,
    work: (tx: Handle) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await this.#deps.queries.read({ app, isMaster: true }, work, {
        timeoutMs,
        signal: gone,
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
   * Returns the clauses of the condition, each with the number of devices without it; null where
   * that takes too long.
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

function conditionOf({ app, pushOrder, nowMs }: Count, params = new Params()) {
  return { text: targetCondition(app, pushOrder, { params, nowMs }), values: params.values };
}

async function sampleOf(tx: Handle, count: Count, limit: number): Promise<JsonObject[]> {
  const { text: condition, values } = conditionOf(count, new Params([count.app.appId]));
  const order = { orderBy: 'id DESC', conditionValues: values.length, skip: 0 };
  const rows = await selectInstallations(tx, { condition, values, limit, ...order });
  return rows.map((row) => installationDocument(row, { hasAcl: true }));
}
