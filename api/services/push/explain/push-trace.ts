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
import { type GatewayFailure, hasAnswered } from '../../../../shared/domain/breaker.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { Outcome } from '../../../../shared/domain/outcome.ts';
import { updateTokenLifeMs } from '../../../../shared/domain/pushes/live-activity.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { reasonText, withStatus } from '../../../../shared/domain/reasons.ts';
import {
  detail,
  replyText,
  type TextParams,
  type TraceText,
  trace as textOf,
  writeTrace,
} from '../../../../shared/domain/texts/texts.ts';
import { type Clause, Params, targetClauses } from '../../../../shared/query/targets/targets.ts';
import type { Rule, RuleExplanation } from '../../../../shared/rules/rule.ts';
import { rulesOf } from '../../../../shared/rules/rules.ts';
import type { ApiDeps } from '../../deps.ts';

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
    return traceReply(trace, { installation: found?.object_id ?? deviceId, explained });
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
  const { current, batch, failure } = facts;
  const isPlanned = batch !== undefined || failure !== undefined;
  const outcome = batch ? batch.outcome : (failure?.outcome ?? null);
  return {
    ...facts,
    isPlanned,
    outcome,
    clause: isPlanned ? undefined : current?.unmetClause,
    device: current?.device,
    route: routeOf(facts),
    failure: outcome !== null && outcome !== 'sent' ? failure : undefined,
    validityDays: options.installationValidityDays,
  };
}

/** Writes the reply. `letter` and `sentence` are wire names. */
function traceReply(
  trace: PushTrace,
  { installation, explained }: { installation: string; explained: RuleExplanation[] },
): JsonObject {
  const { current, clause, route, batch, outcome, failure, inbox, gatewayFailure } = trace;
  const sentences = [
    ...traceTexts(trace),
    ...subscriptionTexts(trace),
    ...explained.flatMap(({ texts }) => texts),
  ];
  return {
    installation,
    isMatched: trace.isPlanned || clause === undefined,
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
    at: outcome === null ? null : timeOf(trace),
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

/**
 * State of a message for the device channel:
 *
 * - `waiting`: in the inbox.
 * - `acknowledged`: acknowledged and deleted.
 * - `expired`: in the inbox after its expiry.
 * - `gone`: deleted, and it is unknown whether it was acknowledged. Either the push has expired, or
 *   newer messages evicted some of its messages.
 */
type InboxState = 'waiting' | 'acknowledged' | 'expired' | 'gone';

/** Facts of a push and a device from which the text is written. */
interface PushTrace extends TraceFacts {
  /** True if planning took the device into a batch, or recorded its failure. */
  isPlanned: boolean;
  clause: Clause | undefined;
  device: TracedDevice | undefined;
  route: { connector: string; profile: string; problem?: string };
  outcome: Outcome | null;
  /** Only if the last outcome is a failure. */
  failure: TracedFailure | undefined;
  validityDays: number;
}

/** Returns whether the device is a target that is not planned yet. */
const isAhead = (trace: PushTrace): boolean =>
  trace.outcome === null &&
  !trace.batch &&
  !trace.clause &&
  trace.push.state !== 'cancelled' &&
  trace.push.state !== 'failed' &&
  !isPassed(trace);

/** Returns whether planning has passed the device. */
function isPassed({ push, device }: Pick<PushTrace, 'push' | 'device'>): boolean {
  // The cursor of a push at local time belongs to one start.
  const { local } = push.pushOrder;
  return push.isPlanned || (!local && device !== undefined && device.id <= push.plannedThrough);
}

/** Describes in one or two sentences what happened between a device and a push. */
function traceTexts(trace: PushTrace): TraceText[] {
  if (trace.outcome !== null) return outcomeTexts(trace, trace.outcome);
  if (trace.batch) return pendingTexts(trace, trace.batch);
  return unmatchedTexts(trace);
}

function outcomeTexts(trace: PushTrace, outcome: Outcome): TraceText[] {
  const { failure, device, inbox, push } = trace;
  const until = push.expiresAt.toISOString();
  if (outcome === 'sent' && inbox === 'gone' && push.displaced > 0)
    return [textOf('inboxGoneOrDisplaced', { until, devices: push.displaced })];
  if (outcome === 'sent' && inbox) return [textOf(inboxCodes[inbox], { until })];
  const deleted = device ? [] : [textOf('deleted')];
  const params = {
    ...routeParams(trace),
    why: failure ? failureText(failure) : null,
    at: timeOf(trace),
  };
  if (outcome === 'sent') return [textOf('handedOver', params), ...repeatTexts(trace), ...deleted];
  return [textOf(codeOf(outcome, failure), params), ...deleted];
}

const inboxCodes = {
  waiting: 'inboxWaiting',
  acknowledged: 'inboxAcknowledged',
  expired: 'inboxExpired',
  gone: 'inboxGone',
} as const satisfies Record<InboxState, TraceText['code']>;

function codeOf(
  outcome: Exclude<Outcome, 'sent'>,
  failure: TracedFailure | undefined,
): TraceText['code'] {
  if (outcome === 'invalid_token') return 'invalidToken';
  if (outcome !== 'failed') return outcome;
  return failure && failure.status > 0 ? 'refused' : 'unsendable';
}

/** Mentions requests without a response. Their messages may have arrived too. */
function repeatTexts({ batch }: PushTrace): TraceText[] {
  const times = batch?.unanswered ?? 0;
  if (times === 0) return [];
  return [times === 1 ? textOf('repeatedOnce') : textOf('repeatedTimes', { times })];
}

const routeParams = ({ route }: PushTrace): TextParams => ({
  connector: route.connector,
  profile: route.connector === 'channel' || route.profile === '' ? null : route.profile,
});

const failureText = ({ status, reason }: TracedFailure): string =>
  status > 0 ? withStatus(status, reason) : reason;

const timeOf = ({ failure, batch }: PushTrace): string | null =>
  (failure?.createdAt ?? batch?.settledAt)?.toISOString() ?? null;

function pendingTexts(trace: PushTrace, batch: TracedBatch): TraceText[] {
  const { state } = trace.push;
  const params = { ...routeParams(trace), state, times: batch.attempt };
  const tried = batch.attempt === 1 ? 'pendingTriedOnce' : 'pendingTried';
  const code =
    state === 'cancelled' ? 'pendingCancelled' : batch.attempt > 0 ? tried : 'pendingWaiting';
  return [textOf(code, params), ...waitTexts(trace, batch)];
}

/** Explains why the device waits: its gateway is unreachable, or the last attempt failed. */
function waitTexts(
  { gatewayFailure }: PushTrace,
  { connector, lastReason }: TracedBatch,
): TraceText[] {
  if (gatewayFailure) {
    const code = hasAnswered(gatewayFailure.reason) ? 'gatewayRefuses' : 'gatewaySilent';
    return [
      textOf(code, { connector, why: gatewayFailure.reason, at: gatewayFailure.at.toISOString() }),
    ];
  }
  return lastReason === null ? [] : [textOf('lastTry', { why: lastReason })];
}

/** Describes the Web Push subscription of a device, or says that a browser has none. */
function subscriptionTexts({ device, route }: PushTrace): TraceText[] {
  if (!device) return [];
  const { push_key: key, push_service: host } = device;
  if (route.connector === 'webpush' && host !== null)
    return [textOf('pushServiceOf', { host, key })];
  const isBrowser = device.device_type === 'web' && route.connector === 'channel';
  return isBrowser && host === null ? [textOf('withoutSubscription')] : [];
}

function unmatchedTexts(trace: PushTrace): TraceText[] {
  const { push, device, clause } = trace;
  if (push.state === 'cancelled') return [textOf('cancelledBefore')];
  if (push.state === 'failed') return [textOf('failedWhole', { why: push.error })];
  if (clause)
    return [
      textOf(isPassed(trace) ? 'notMatched' : 'willNotMatch', {
        because: clauseText(trace, clause),
      }),
    ];
  if (!isPassed(trace)) {
    const { problem } = trace.route;
    const params = { ...routeParams(trace), state: push.state };
    return [
      problem === undefined
        ? textOf('notYet', params)
        : textOf('notYetUnsendable', { ...params, why: problem }),
    ];
  }
  if (device && device.created_at > push.createdAt)
    return [textOf('registeredLater', { at: device.created_at.toISOString() })];
  const saved = device ? [textOf('savedLast', { at: device.updated_at.toISOString() })] : [];
  return [textOf('wouldMatchNow'), ...saved];
}

function clauseText({ device, validityDays }: PushTrace, clause: Clause): TraceText {
  switch (clause.kind) {
    case 'where':
    case 'channels':
    case 'rule':
      return textOf('unmetCondition', { clause: clause.text });
    case 'devices':
      return textOf('unlisted', { clause: clause.text });
    case 'startToken':
      return textOf('noStartToken', { clause: clause.text });
    case 'updateToken':
      return textOf('noUpdateToken', { clause: clause.text });
    case 'freshToken':
      return textOf('endedUpdateToken', {
        clause: clause.text,
        hours: updateTokenLifeMs / 3_600_000,
      });
    case 'broadcast':
      return textOf('broadcastOnly', { clause: clause.text });
    case 'valid':
      return textOf('invalidDevice');
    case 'fresh':
      return textOf('staleDevice', {
        at: device?.updated_at.toISOString() ?? null,
        days: validityDays,
      });
  }
}
