import { toPushMessage } from '../../../../connectors/contract/connector.ts';
import { Router } from '../../../../connectors/routing.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countAudience, maxGroups } from '../../../../shared/db/tables/installations/audience.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { parsePush, parsePushToDevices } from '../../../../shared/domain/pushes/push.ts';
import { withoutCql } from '../../../../shared/query/cql/cql.ts';
import { checkTargets, Params, targetCondition } from '../../../../shared/query/targets/targets.ts';
import { masterReader } from '../../../../shared/query/viewer.ts';
import type { ApiDeps } from '../../deps.ts';
import { findMissingProfile } from '../missing-profiles.ts';
import { expiryOf } from '../pushes.ts';
import { describeShare, splitByConnector } from './audience.ts';
import { type LimitInputs, limitsOf, type PushDraft } from './limits.ts';
import { paceOf } from './pace.ts';
import { planOf } from './plan.ts';

/** The most the count may take; beyond it the caller gets 124. */
const scanTimeoutMs = 30_000;

/** Says what a push would do, and does nothing: every statement runs in one READ ONLY transaction. */
export class DryRunService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the body of POST /1.1/push, or of POST /1.1/push/devices where it has `device_ids`; refuses what
   * those would refuse as malformed. Limits that would refuse or cut the push are sentences in the reply.
   */
  async explain(appId: string, draft: PushDraft): Promise<JsonObject> {
    const app = await this.#deps.appCache.app(appId);
    if (!app) throw refuse('notFound', 'There is no such app.');
    const nowMs = this.#deps.clock.now();
    const parse = 'device_ids' in draft.body ? parsePushToDevices : parsePush;
    const { pushOrder, timing, warnings } = parse(withoutCql(draft.body), draft.prodHeader, nowMs);
    checkTargets(pushOrder, masterReader(appId));
    const createdAt = new Date(nowMs);
    const expiresAt = expiryOf(timing, timing.pushTime ?? createdAt);
    const push = { objectId: newPushObjectId(), pushOrder, expiresAt, createdAt };
    // Looks with a connection of its own: not while this call holds another one.
    const missing = await findMissingProfile(this.#deps, app, pushOrder);
    const profiles = await this.#deps.appCache.profiles(appId);
    const plan = { ...draft, app, push, timing, profiles, missing, nowMs };
    const report = await this.#deps.queries.read({ app, isMaster: true }, (tx) => measure(tx, plan), {
      timeoutMs: scanTimeoutMs,
    });
    return warnings.length > 0 ? { ...report, warnings } : report;
  }
}

type Plan = Omit<LimitInputs, 'shares' | 'devices' | 'estimatedSeconds' | 'isTruncated'>;

async function measure(tx: Handle, plan: Plan): Promise<JsonObject> {
  const { app, push, profiles, nowMs } = plan;
  const { pushOrder } = push;
  const params = new Params();
  const text = targetCondition(app, pushOrder, { params, nowMs });
  const { groups, devices } = await countAudience(tx, { text, values: params.values });
  const shares = splitByConnector(groups, new Router(app, profiles, push));
  const pace = await paceOf(tx, app, { order: pushOrder, shares });
  const isTruncated = groups.length >= maxGroups;
  const limits = await limitsOf(tx, { ...plan, ...pace, shares, devices, isTruncated });
  const shown = [...shares].map(([id, share]) => [id, describeShare(id, share, toPushMessage(push))]);
  const report = await planOf(tx, app, { order: pushOrder, nowMs, devices });
  return { devices, connectors: Object.fromEntries(shown), limits, ...pace, ...report };
}
