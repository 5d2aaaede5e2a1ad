import { type Route, Router } from '../../../../connectors/routing.ts';
import { findGatewayFailure } from '../../../../shared/db/tables/gateways/failures.ts';
import { findPushByPublicId } from '../../../../shared/db/tables/pushes/pushes.ts';
import {
  findBatchOfDevice,
  findDevice,
  findFailure,
  hasPendingMessage,
  type TracedBatch,
  type TracedDevice,
  type TracedFailure,
  testConditions,
} from '../../../../shared/db/tables/pushes/traces.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { GatewayFailure } from '../../../../shared/domain/breaker.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { Outcome } from '../../../../shared/domain/outcome.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import { type Clause, targetClauses } from '../../../../shared/query/targets/clauses.ts';
import { Params } from '../../../../shared/query/targets/targets.ts';
import type { ApiDeps } from '../../deps.ts';
import { type InboxState, traceText } from './trace-text.ts';

/** What is known of a device that still exists. */
interface Present {
  device: TracedDevice;
  /** The first clause that does not hold as things are now. */
  broken: Clause | undefined;
  isFresh: boolean;
  route: Route;
}

interface Facts {
  push: Push;
  present: Present | undefined;
  batch: TracedBatch | undefined;
  failure: TracedFailure | undefined;
  letter: InboxState | null;
  /** Why the gateway that the device still waits for could not be asked last. */
  trouble: GatewayFailure | undefined;
}

/** "Why did this device not get it?", answered for one push and one device. */
export class PushTraceService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * `device` is an installation's objectId, installationId or device token. What was planned is told as it
   * was, the rest as it would be now. Throws 404 for an unknown app or device, 404/101 for an unknown push.
   */
  async explain(appId: string, publicId: string, device: string): Promise<JsonObject> {
    const app = await this.#deps.appCache.app(appId);
    if (!app) throw refuse('notFound', 'There is no such app.');
    const push = /^[A-Za-z0-9]{1,16}$/.test(publicId)
      ? await findPushByPublicId(this.#deps.db, appId, publicId)
      : undefined;
    if (!push) throw refuse('objectNotFound');
    // PostgreSQL refuses NUL, and no device has such a name.
    const name = device.includes('\0') ? '' : device;
    const found = await findDevice(this.#deps.db, appId, name);
    const facts = found ? await this.#ofPresent(app, push, found) : await this.#ofDeleted(push, name);
    return this.#tell(app, facts, found?.object_id ?? name);
  }

  async #ofPresent(app: App, push: Push, device: TracedDevice): Promise<Facts> {
    const { db, clock, queries } = this.#deps;
    const params = new Params([app.appId]);
    const clauses = targetClauses(app, push.pushOrder, { params, nowMs: clock.now() });
    const conditions = clauses.map((clause) => clause.condition);
    const [holds, batch, failure, profiles] = await Promise.all([
      queries.readFresh({ app, isMaster: true }, (tx) =>
        testConditions(tx, device.id, { conditions, values: params.values }),
      ),
      findBatchOfDevice(db, push, device.id),
      findFailure(db, push, { id: device.id }),
      this.#deps.appCache.profiles(app.appId),
    ]);
    const isFresh = holds?.[clauses.findIndex(({ kind }) => kind === 'fresh')] ?? false;
    const present = {
      device,
      broken: clauses.find((_, i) => !holds?.[i]),
      isFresh,
      route: new Router(app, profiles, push).route(device),
    };
    const letter = batch?.connector === 'channel' ? await this.#letterOf(push, batch, device.id) : null;
    return { push, present, batch, failure, letter, trouble: await this.#troubleOf(batch, app.appId) };
  }

  /** A device that was deleted for its dead token left its public id with the reason. */
  async #ofDeleted(push: Push, objectId: string): Promise<Facts> {
    const { db } = this.#deps;
    const failure = await findFailure(db, push, { objectId });
    if (!failure) throw refuse('notFound', 'There is no such installation.');
    const batch = await findBatchOfDevice(db, push, failure.installation);
    return { push, present: undefined, batch, failure, letter: null, trouble: undefined };
  }

  async #troubleOf(batch: TracedBatch | undefined, appId: string): Promise<GatewayFailure | undefined> {
    if (batch === undefined || batch.outcome !== null) return undefined;
    return findGatewayFailure(this.#deps.db, { ...batch, appId });
  }

  async #letterOf(push: Push, batch: TracedBatch, installation: number): Promise<InboxState | null> {
    const isExpired = push.expiresAt.getTime() <= this.#deps.clock.now();
    if (await hasPendingMessage(this.#deps.db, push, installation)) return isExpired ? 'expired' : 'waiting';
    if (batch.outcome !== 'sent') return null;
    // Letters that expired are deleted as well, so that afterwards nobody knows.
    return isExpired ? 'gone' : 'acknowledged';
  }

  #tell(app: App, facts: Facts, installation: string): JsonObject {
    const { push, present, batch, failure, letter, trouble } = facts;
    const isPlanned = batch !== undefined || failure !== undefined;
    const clause = isPlanned ? undefined : present?.broken;
    const outcome: Outcome | null = batch?.outcome ?? (batch ? null : (failure?.outcome ?? null));
    const isTold = failure !== undefined && outcome !== null && outcome !== 'sent';
    const at = isTold ? failure.createdAt : outcome === null ? null : (batch?.settledAt ?? null);
    return {
      installation,
      isMatched: isPlanned || clause === undefined,
      clause: clause?.text ?? null,
      isValid: present?.device.valid ?? null,
      isFresh: present?.isFresh ?? null,
      updatedAt: present?.device.updated_at.toISOString() ?? null,
      route: routeOf(facts),
      batch: batch ? { id: batch.id, attempt: batch.attempt, settled: batch.isSettled } : null,
      outcome,
      repeats: batch?.unanswered ?? 0,
      status: isTold ? failure.status : null,
      reason: isTold ? failure.reason : null,
      letter,
      gatewayFailure: trouble ? { reason: trouble.reason, at: trouble.at.toISOString() } : null,
      at: at?.toISOString() ?? null,
      sentence: traceText({
        push,
        clause,
        device: present?.device,
        route: routeOf(facts),
        batch,
        outcome,
        failure: isTold ? failure : undefined,
        letter,
        trouble,
        validityDays: app.options.installationValidityDays,
      }),
    };
  }
}

/** The way that was taken, or the one that would be taken now. */
function routeOf({ present, batch, failure }: Facts): {
  connector: string;
  profile: string;
  problem?: string;
} {
  if (batch) {
    const { connector, profile } = batch;
    // Batches that no profile serves were written with an empty name and one reason for all.
    return profile === '' && failure
      ? { connector, profile, problem: failure.reason }
      : { connector, profile };
  }
  if (failure) return { connector: failure.connector, profile: '' };
  const { connector = '', profile = '', error: problem } = present?.route ?? {};
  return problem === undefined ? { connector, profile } : { connector, profile, problem };
}
