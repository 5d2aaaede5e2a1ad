import { type Route, Router } from '../../../../connectors/routing.ts';
import { findGatewayFailure } from '../../../../shared/db/tables/gateways.ts';
import {
  findBatchOfDevice,
  findDevice,
  findFailure,
  hasPendingMessage,
  type TracedBatch,
  type TracedDevice,
  type TracedFailure,
  testConditions,
} from '../../../../shared/db/tables/push-reports.ts';
import { findPushByPublicId } from '../../../../shared/db/tables/pushes.ts';
import { meaningOf, replyRoute } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { remedyOf } from '../../../../shared/domain/admin/remedies.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { GatewayFailure } from '../../../../shared/domain/breaker.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { Outcome } from '../../../../shared/domain/outcome.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { detail, replyText, writeTrace } from '../../../../shared/domain/texts/texts.ts';
import { type Clause, Params, targetClauses } from '../../../../shared/query/targets/targets.ts';
import type { Rule, RuleExplanation } from '../../../../shared/rules/rule.ts';
import { rulesOf } from '../../../../shared/rules/rules.ts';
import type { ApiDeps } from '../../deps.ts';
import { type InboxState, isAhead, type PushTrace, traceTexts } from './trace-text.ts';

/** Device that still exists, in its current state. */
interface CurrentDevice {
  device: TracedDevice;
  /** The first clause of the push that the device does not currently match. */
  unmetClause: Clause | undefined;
  isFresh: boolean;
  route: Route;
}

/** Rows that explain what happened between a push and a device. */
interface TraceFacts {
  push: Push;
  current: CurrentDevice | undefined;
  batch: TracedBatch | undefined;
  failure: TracedFailure | undefined;
  inbox: InboxState | null;
  /** Last failure of the gateway, if the device still waits for it. */
  gatewayFailure: GatewayFailure | undefined;
}

/** Explains why a device did or did not get a push. */
export class PushTraceService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Explains a push for one device. `device` is an installation's objectId, installationId or
   * device token. If the device was planned, the reply describes it as it was planned, otherwise as
   * it would be planned now. Throws error 404 if the app or device is unknown, error 101 (status
   * 404) if the push is unknown.
   */
  async explain(appId: string, publicId: string, device: string): Promise<JsonObject> {
    const app = await this.#deps.appCache.app(appId);
    if (!app) throw refuse('notFound', detail('noApp'));
    const push = /^[A-Za-z0-9]{1,16}$/.test(publicId)
      ? await findPushByPublicId(this.#deps.db, appId, publicId)
      : undefined;
    if (!push) throw refuse('objectNotFound');
    // PostgreSQL refuses NUL, so no device has such an id.
    const deviceId = device.includes('\0') ? '' : device;
    const found = await findDevice(this.#deps.db, appId, deviceId);
    const facts = found
      ? await this.#factsOfDevice(app, push, found)
      : await this.#factsOfDeleted(push, deviceId);
    const trace = traceOf(app, facts);
    const rules = rulesOf({
      app,
      push,
      router: await this.#routerOf(app, push),
      nowMs: this.#deps.clock.now(),
    });
    const explained = trace.clause ? [] : await this.#explainRules(rules, trace);
    return traceReply(facts, trace, { installation: found?.object_id ?? deviceId, explained });
  }

  async #factsOfDevice(app: App, push: Push, device: TracedDevice): Promise<TraceFacts> {
    const { db, clock, queries } = this.#deps;
    const params = new Params([app.appId]);
    const clauses = targetClauses(app, push.pushOrder, { params, nowMs: clock.now() });
    const conditions = clauses.map((clause) => clause.condition);
    const [results, batch, failure, router] = await Promise.all([
      queries.readFresh({ app, isMaster: true }, (tx) =>
        testConditions(tx, device.id, { conditions, values: params.values }),
      ),
      findBatchOfDevice(db, push, device.id),
      findFailure(db, push, { id: device.id }),
      this.#routerOf(app, push),
    ]);
    const isFresh = results?.[clauses.findIndex(({ kind }) => kind === 'fresh')] ?? false;
    const current = {
      device,
      unmetClause: clauses.find((_, i) => !results?.[i]),
      isFresh,
      route: router.route(device),
    };
    const inbox =
      batch?.connector === 'channel' ? await this.#inboxState(push, batch, device.id) : null;
    const gatewayFailure = await this.#gatewayFailureOf(batch, app.appId);
    return { push, current, batch, failure, inbox, gatewayFailure };
  }

  async #routerOf(app: App, push: Push): Promise<Router> {
    return new Router(app, await this.#deps.appCache.profiles(app.appId), push);
  }

  /** Collects what each rule of the push did, or would do, to the device. */
  async #explainRules(rules: readonly Rule[], trace: PushTrace): Promise<RuleExplanation[]> {
    const { push, device, batch, outcome } = trace;
    const scope = { db: this.#deps.db, push, device, batch, outcome, isAhead: isAhead(trace) };
    const explained: RuleExplanation[] = [];
    for (const rule of rules) if (rule.explain) explained.push(await rule.explain(scope));
    return explained;
  }

  /**
   * Finds the facts of a device that was deleted because of its invalid token. The failure contains
   * its public id.
   */
  async #factsOfDeleted(push: Push, objectId: string): Promise<TraceFacts> {
    const { db } = this.#deps;
    const failure = await findFailure(db, push, { objectId });
    if (!failure) throw refuse('notFound', detail('noInstallation'));
    const batch = await findBatchOfDevice(db, push, failure.installation);
    return { push, current: undefined, batch, failure, inbox: null, gatewayFailure: undefined };
  }

  async #gatewayFailureOf(
    batch: TracedBatch | undefined,
    appId: string,
  ): Promise<GatewayFailure | undefined> {
    if (batch === undefined || batch.outcome !== null) return undefined;
    return findGatewayFailure(this.#deps.db, { ...batch, appId });
  }

  async #inboxState(
    push: Push,
    batch: TracedBatch,
    installation: number,
  ): Promise<InboxState | null> {
    const isExpired = push.expiresAt.getTime() <= this.#deps.clock.now();
    if (await hasPendingMessage(this.#deps.db, push, installation))
      return isExpired ? 'expired' : 'waiting';
    if (batch.outcome !== 'sent') return null;
    // Expired and evicted messages are deleted like acknowledged messages, so they cannot be
    // distinguished later.
    return isExpired || push.displaced > 0 ? 'gone' : 'acknowledged';
  }
}

/** Describes what happened between the push and the device, as input for the texts of the reply. */
function traceOf({ options }: App, facts: TraceFacts): PushTrace {
  const { push, current, batch, failure: lastFailure, inbox, gatewayFailure } = facts;
  const isPlanned = batch !== undefined || lastFailure !== undefined;
  const outcome: Outcome | null = batch?.outcome ?? (batch ? null : (lastFailure?.outcome ?? null));
  return {
    ...{ push, batch, outcome, inbox, gatewayFailure },
    clause: isPlanned ? undefined : current?.unmetClause,
    device: current?.device,
    route: routeOf(facts),
    failure: outcome !== null && outcome !== 'sent' ? lastFailure : undefined,
    validityDays: options.installationValidityDays,
  };
}

/** Writes the reply. `letter` and `sentence` are wire names. */
function traceReply(
  { current, failure: lastFailure }: TraceFacts,
  trace: PushTrace,
  { installation, explained }: { installation: string; explained: RuleExplanation[] },
): JsonObject {
  const { clause, route, batch, outcome, failure, inbox, gatewayFailure } = trace;
  const isPlanned = batch !== undefined || lastFailure !== undefined;
  const at = failure?.createdAt ?? (outcome === null ? null : (batch?.settledAt ?? null));
  const sentences = [...traceTexts(trace), ...explained.flatMap(({ texts }) => texts)];
  return {
    installation,
    isMatched: isPlanned || clause === undefined,
    clause: clause?.text ?? null,
    isValid: current?.device.valid ?? null,
    isFresh: current?.isFresh ?? null,
    updatedAt: current?.device.updated_at.toISOString() ?? null,
    route: replyRoute(route),
    batch: batch ? { id: batch.id, attempt: batch.attempt, settled: batch.isSettled } : null,
    ...Object.assign({}, ...explained.map(({ members }) => members)),
    outcome,
    repeats: batch?.unanswered ?? 0,
    status: failure?.status ?? null,
    reason: failure ? reasonText(failure.reason) : null,
    meaning: failure ? meaningOf(failure.reason) : null,
    remedy: failure ? { ...remedyOf(failure.outcome, failure.reason) } : null,
    letter: inbox,
    gatewayFailure: gatewayFailure
      ? {
          reason: reasonText(gatewayFailure.reason),
          meaning: meaningOf(gatewayFailure.reason),
          at: gatewayFailure.at.toISOString(),
        }
      : null,
    at: at?.toISOString() ?? null,
    sentence: writeTrace(sentences, 'en'),
    texts: sentences.map(replyText),
  };
}

/** Returns the route that was used, or the route that would be used now. */
function routeOf({ current, batch, failure }: TraceFacts): PushTrace['route'] {
  if (batch) {
    const { connector, profile } = batch;
    // If no profile serves a batch, its profile name is empty and all its devices have the same
    // reason.
    return profile === '' && failure
      ? { connector, profile, problem: failure.reason }
      : { connector, profile };
  }
  if (failure) return { connector: failure.connector, profile: '' };
  const { connector = '', profile = '', error: problem } = current?.route ?? {};
  return problem === undefined ? { connector, profile } : { connector, profile, problem };
}
