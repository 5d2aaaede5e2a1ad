import { toPushMessage } from '../../../../connectors/contract/connector.ts';
import { Router } from '../../../../connectors/routing.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { countAudience, maxGroups } from '../../../../shared/db/tables/installations/audience.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { newPushObjectId } from '../../../../shared/domain/ids.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { parsePush, parsePushToDevices } from '../../../../shared/domain/pushes/push.ts';
import { withoutCql } from '../../../../shared/query/cql/select.ts';
import { checkTargets, Params, targetCondition } from '../../../../shared/query/targets/targets.ts';
import { masterViewer } from '../../../../shared/query/viewer.ts';
import type { ApiDeps } from '../../deps.ts';
import { MissingProfiles } from '../missing-profiles.ts';
import { expiryOf } from '../pushes.ts';
import { describeShare, splitByConnector } from './audience.ts';
import { estimateDuration } from './duration.ts';
import { type LimitInputs, limitsOf, type PushDraft } from './limits.ts';
import { planOf } from './plan.ts';

/** Time limit of the count; the caller gets 124 after it. */
const countTimeoutMs = 30_000;

/** Describes what a push would do. All statements run in one READ ONLY transaction. */
export class DryRunService {
  readonly #deps: ApiDeps;
  readonly #missingProfiles: MissingProfiles;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#missingProfiles = new MissingProfiles(deps);
  }

  /**
   * Takes the body of POST /1.1/push, or of POST /1.1/push/devices when it has `device_ids`. Throws the same refusals for
   * a malformed body; limits that would refuse or shorten the push are messages in the reply.
   */
  async explain(appId: string, draft: PushDraft): Promise<JsonObject> {
    const app = await this.#deps.appCache.app(appId);
    if (!app) throw refuse('notFound', 'There is no such app.');
    const nowMs = this.#deps.clock.now();
    const parse = 'device_ids' in draft.body ? parsePushToDevices : parsePush;
    const { pushOrder, timing, warnings } = parse(withoutCql(draft.body), draft.prodHeader, nowMs);
    checkTargets(pushOrder, masterViewer(appId));
    const createdAt = new Date(nowMs);
    const expiresAt = expiryOf(timing, timing.pushTime ?? createdAt);
    const push = { objectId: newPushObjectId(), pushOrder, expiresAt, createdAt };
    // Needs a connection of its own, so it runs before this call takes one.
    const missing = await this.#missingProfiles.find(app, pushOrder);
    const profiles = await this.#deps.appCache.profiles(appId);
    const inputs = { ...draft, app, push, timing, profiles, missing, nowMs };
    const report = await this.#deps.queries.read({ app, isMaster: true }, (tx) => measure(tx, inputs), {
      timeoutMs: countTimeoutMs,
    });
    return warnings.length > 0 ? { ...report, warnings } : report;
  }
}

type DryRunInputs = Omit<LimitInputs, 'shares' | 'devices' | 'estimatedSeconds' | 'isTruncated'>;

async function measure(tx: Handle, inputs: DryRunInputs): Promise<JsonObject> {
  const { app, push, profiles, nowMs } = inputs;
  const { pushOrder } = push;
  const params = new Params();
  const text = targetCondition(app, pushOrder, { params, nowMs });
  const { groups, devices } = await countAudience(tx, { text, values: params.values });
  const shares = splitByConnector(groups, new Router(app, profiles, push));
  const duration = await estimateDuration(tx, app, { pushOrder, shares });
  const isTruncated = groups.length >= maxGroups;
  const limits = await limitsOf(tx, { ...inputs, ...duration, shares, devices, isTruncated });
  const connectors = [...shares].map(([id, share]) => [id, describeShare(id, share, toPushMessage(push))]);
  const report = await planOf(tx, app, { pushOrder, nowMs, devices });
  return { devices, connectors: Object.fromEntries(connectors), limits, ...duration, ...report };
}
