import { Router } from '../../../../connectors/routing.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countRedrivable, listUndelivered } from '../../../../shared/db/tables/push-failures.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { Redrive } from '../../../../shared/domain/pushes/push.ts';
import { allTotals, type Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { failureConditions } from '../../../../shared/query/targets/redrive.ts';
import { Params } from '../../../../shared/query/targets/targets.ts';
import type { ApiDeps } from '../../deps.ts';
import { type DryRunInputs, measureAudience } from '../../push/explain/dry-run.ts';
import { expiryOf } from '../../push/pushes.ts';
import { requireApp } from '../apps.ts';
import { type PageRequest, toPage } from '../lists/page.ts';
import { orderOf, type PushName, type RedriveRequest, type RedriveService, requestOf } from './redrive.ts';

/** Time limit of the counts; the caller gets 124 after it. */
const countTimeoutMs = 30_000;

/** Causes that a dry run names. */
const maxCauses = 50;

/** Tells what redrives would do, and which pushes can have one (protocol/admin-api.md#redrive). */
export class RedriveForecastService {
  readonly #deps: ApiDeps;
  readonly #redrives: RedriveService;

  constructor(deps: ApiDeps, redrives: RedriveService) {
    this.#deps = deps;
    this.#redrives = redrives;
  }

  /**
   * Counts the recipients of a redrive, and those that it leaves out, with the limits that would refuse, shorten or delay it.
   * Sends nothing. Throws as `RedriveService.find`.
   */
  async explain(name: PushName, request: RedriveRequest): Promise<JsonObject> {
    const { appId } = name;
    const app = await requireApp(this.#deps, appId);
    const push = await this.#redrives.find(name);
    const profiles = await this.#deps.appCache.profiles(appId);
    const nowMs = this.#deps.clock.now();
    const { pushOrder, timing } = requestOf(push, orderOf(push, request), request);
    const createdAt = new Date(nowMs);
    const expiresAt = expiryOf(timing, createdAt);
    const source = { objectId: push.objectId, pushOrder, expiresAt, createdAt };
    const body: JsonObject =
      typeof request.flowControl === 'number' ? { flow_control: request.flowControl } : {};
    const draft = { body, bodyBytes: 0, prodHeader: undefined };
    const inputs = { ...draft, app, push: source, timing, profiles, missing: undefined, nowMs };
    const { redrive } = pushOrder;
    if (!redrive) throw new Error('the redrive has no failures');
    return this.#deps.queries.read(
      { app, isMaster: true },
      (tx) => forecastOf(tx, app, { push, redrive, inputs }),
      { timeoutMs: countTimeoutMs },
    );
  }

  /** Lists finished pushes with recipients that they did not reach, newest first. Throws 404 for an unknown app. */
  async list(appId: string, request: Parameters<typeof listUndelivered>[2] & PageRequest) {
    const app = await requireApp(this.#deps, appId);
    const rows = await this.#deps.queries.readFresh({ app, isMaster: true }, (tx) =>
      listUndelivered(tx, appId, request, { ...request, limit: request.limit + 1 }),
    );
    const { results, next } = toPage(rows, request.limit, ({ id }) => id);
    return { results: results.map(({ id: _, ...push }) => push), next };
  }
}

async function forecastOf(
  tx: Handle,
  app: App,
  { push, redrive, inputs }: { push: Push; redrive: Redrive; inputs: DryRunInputs },
): Promise<JsonObject> {
  const { devices, ...audience } = await measureAudience(
    tx,
    inputs,
    new Router(app, inputs.profiles, inputs.push),
  );
  const params = new Params();
  const { selected, taken, unsure } = failureConditions(app.appId, redrive, params);
  const limits = { taken, unsure, limit: maxCauses };
  const counts = await countRedrivable(tx, { text: selected, values: params.values }, limits);
  const possible = counts.n - counts.redriven - (redrive.includeUnsure ? 0 : counts.unsure);
  return {
    devices,
    ...audience,
    failures: {
      selected: counts.n,
      redriven: counts.redriven,
      unsure: counts.unsure,
      gone: Math.max(0, possible - devices),
      notKept: notKept(push, redrive, counts.n),
    },
    causes: counts.causes.map(({ redriven: _, unsure: _unsure, ...cause }) => ({
      ...cause,
      reason: reasonText(cause.reason),
      meaning: meaningOf(cause.reason),
    })),
  };
}

/** Returns how many failures of the push are not kept; 0 for a part of them, which the totals do not count. */
function notKept({ totals }: Push, { outcomes, connector, reason, from, to }: Redrive, kept: number): number {
  if (reason !== null || from !== null || to !== null) return 0;
  const counted = Object.entries(totals ?? {}).filter(([id]) => connector === null || id === connector);
  const all = allTotals(Object.fromEntries(counted));
  const ended = outcomes.reduce((sum, outcome) => sum + (all[outcome] ?? 0), 0);
  return Math.max(0, ended - kept);
}
