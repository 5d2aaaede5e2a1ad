import { Breaker, type BreakerTiming } from '../../shared/breaker.ts';
import { isDoneWithin, minuteMs, sleep } from '../../shared/clock.ts';
import { retryDuringOutage } from '../../shared/db/outage.ts';
import type { Handle } from '../../shared/db/pool.ts';
import {
  type DueDelivery,
  listDue,
  recordAttempt,
} from '../../shared/db/tables/webhook-deliveries.ts';
import {
  clearFailures,
  countFailure,
  type Endpoint,
  type EndpointKey,
  endRun,
  findEndpoint,
  releaseEndpoints,
} from '../../shared/db/tables/webhooks.ts';
import { type OffReason, webhookLimits } from '../../shared/domain/webhooks/endpoint.ts';
import { createHttpClient, type HttpClient } from '../../shared/http/client.ts';
import type { Semaphore } from '../../shared/semaphore.ts';
import type { DispatcherDeps } from '../deps.ts';
import { type Judgement, judge } from './attempt.ts';
import { dataOf, requestOf } from './request.ts';
import { type SwitchOffDeps, switchEndpointOff } from './switch-off.ts';

export type RunDeps = Pick<DispatcherDeps, 'db' | 'metrics'> & SwitchOffDeps;

/** Breaker of an endpoint. It waits longer than one of a gateway, because no push depends on it. */
export const endpointTiming: BreakerTiming = {
  coolDownMs: 5000,
  maxCooldownMs: 5 * minuteMs,
  windowMs: 30_000,
  minGroups: 3,
  heavyGroup: 50,
};

const pageSize = 32;
/** Age at which the settings of an endpoint are read again. */
const settingsMaxAgeMs = 400;
/** Time after which a run looks for new deliveries while requests are in flight. */
const lookAgainMs = 1000;
/** Time after which a run lets other endpoints run, if some wait. */
const yieldAfterMs = 10_000;
/** Pause before a run that could not end tries to end again. */
const againMs = 50;
/** Pause of an endpoint after a failure of this process. */
const faultPauseMs = 1000;
const outagePatienceMs = 60_000;

/** State of an endpoint that outlives a run. Another URL has another state. */
interface Remembered {
  url: string;
  breaker: Breaker;
  client: HttpClient | undefined;
  /** Time until which the endpoint asked for no requests (monotonic). */
  throttledUntilMs: number;
  usedAtMs: number;
}

/** What all runs of a dispatcher share. */
export interface RunContext {
  dispatcher: string;
  /** Limits the statements of all runs, so that pushes keep their connections. */
  statements: Semaphore;
  stopped: AbortSignal;
  /** True if other endpoints wait for a run. */
  othersWait(): boolean;
}

/**
 * Breakers and connections of the endpoints that this dispatcher has sent to. Forgets endpoints
 * that it has not used for some minutes.
 */
export class EndpointStates {
  readonly #deps: Pick<RunDeps, 'clock' | 'log'>;
  readonly #timing: BreakerTiming;
  readonly #states = new Map<string, Remembered>();

  constructor(deps: Pick<RunDeps, 'clock' | 'log'>, timing: BreakerTiming) {
    this.#deps = deps;
    this.#timing = timing;
  }

  /** Returns the state of an endpoint. If its URL has changed, closes the state of the old URL. */
  of({ appId, name, secrets: { url } }: Endpoint): Remembered {
    const { clock, log } = this.#deps;
    const id = JSON.stringify([appId, name]);
    const existing = this.#states.get(id);
    if (existing?.url === url) {
      existing.usedAtMs = clock.monotonicMs();
      return existing;
    }
    if (existing) closeState(existing).catch(() => undefined);
    const state: Remembered = {
      url,
      breaker: new Breaker(
        this.#timing,
        () => clock.monotonicMs(),
        (to) =>
          log.info({ app: appId, webhook: name, state: to }, 'the breaker of a webhook changed'),
      ),
      client: undefined,
      throttledUntilMs: 0,
      usedAtMs: clock.monotonicMs(),
    };
    this.#states.set(id, state);
    return state;
  }

  /** Closes what was not used for `maxAgeMs`. */
  async forgetUnused(maxAgeMs: number): Promise<void> {
    for (const [id, state] of this.#states) {
      if (this.#deps.clock.monotonicMs() - state.usedAtMs < maxAgeMs) continue;
      this.#states.delete(id);
      await closeState(state);
    }
  }
}

async function closeState({ breaker, client }: Remembered): Promise<void> {
  breaker.close();
  await client?.close();
}

/** Settings of an endpoint, with the state of its URL. */
interface Receiver {
  endpoint: Endpoint;
  state: Remembered;
}

/**
 * Sends the due deliveries of one endpoint, at most four at the same time, until none is due or the
 * endpoint does not answer. Only one dispatcher runs on an endpoint at a time (`claimEndpoints`).
 */
export class EndpointRun {
  readonly #deps: RunDeps;
  readonly #key: EndpointKey;
  readonly #context: RunContext;
  readonly #states: EndpointStates;
  readonly #inFlight = new Map<number, Promise<void>>();
  #queue: DueDelivery[] = [];
  #endpoint: { value: Endpoint | undefined; readAtMs: number } | undefined;
  #url: string | undefined;
  #hasFailed = false;
  #hasFault = false;

  constructor(deps: RunDeps, key: EndpointKey, context: RunContext, states: EndpointStates) {
    this.#deps = deps;
    this.#key = key;
    this.#context = context;
    this.#states = states;
  }

  /** Rejects if the database is unavailable. The lease then ends, and the endpoint runs again. */
  async run(): Promise<void> {
    const { clock } = this.#deps;
    const beganAtMs = clock.monotonicMs();
    try {
      while (!this.#context.stopped.aborted) {
        const receiver = await this.#receiver();
        if (!receiver) return;
        const isTired = clock.monotonicMs() - beganAtMs > yieldAfterMs;
        const mustYield = this.#hasFault || (isTired && this.#context.othersWait());
        if (!mustYield) await this.#start(receiver);
        if (this.#inFlight.size > 0) await this.#untilNews();
        else if (mustYield) return await this.#yield();
        else if (await this.#end(receiver)) return;
        else await sleep(againMs, this.#context.stopped);
      }
    } finally {
      await Promise.all(this.#inFlight.values());
    }
  }

  /**
   * Resolves when a request has finished, and at the latest after a second. A slow answer must not
   * delay new deliveries or a change of the settings.
   */
  async #untilNews(): Promise<void> {
    await isDoneWithin(Promise.race(this.#inFlight.values()), lookAgainMs);
  }

  /**
   * Returns the endpoint with settings that are at most 0.4 s old; undefined if it was deleted. With
   * another URL, it may be a new endpoint of the same name, so the deliveries are read again.
   */
  async #receiver(): Promise<Receiver | undefined> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (!this.#endpoint || nowMs - this.#endpoint.readAtMs > settingsMaxAgeMs) {
      const { db, vault } = this.#deps;
      const value = await this.#query(() => findEndpoint(db, vault, this.#key));
      this.#endpoint = { value, readAtMs: nowMs };
      this.#hasFailed ||= (value?.failures ?? 0) > 0;
    }
    const { value: endpoint } = this.#endpoint;
    if (!endpoint) return undefined;
    if (this.#url !== endpoint.secrets.url) this.#queue = [];
    this.#url = endpoint.secrets.url;
    return { endpoint, state: this.#states.of(endpoint) };
  }

  /** Returns the milliseconds until the endpoint may be asked again; 0 if it may be asked now. */
  #pauseMs({ breaker, throttledUntilMs }: Remembered): number {
    const throttleMs = Math.max(0, throttledUntilMs - this.#deps.clock.monotonicMs());
    const cooldownMs = breaker.isPassable ? 0 : Math.max(breaker.cooldownLeftMs, againMs);
    return Math.max(throttleMs, cooldownMs);
  }

  /** Starts deliveries while there is room. Redeliveries by hand do not ask the breaker. */
  async #start(receiver: Receiver): Promise<void> {
    const { endpoint, state } = receiver;
    const isOpen = endpoint.isEnabled && this.#pauseMs(state) === 0;
    if (this.#queue.length === 0 && this.#inFlight.size < webhookLimits.concurrency) {
      const filter = { isEnabled: isOpen, except: [...this.#inFlight.keys()], limit: pageSize };
      this.#queue = await this.#query(() => listDue(this.#deps.db, this.#key, filter));
    }
    while (this.#inFlight.size < webhookLimits.concurrency) {
      const [delivery] = this.#queue;
      if (!delivery) return;
      if (!delivery.isManual && !(endpoint.isEnabled && this.#pauseMs(state) === 0)) {
        this.#queue = [];
        return;
      }
      this.#queue.shift();
      const work = this.#deliver(receiver, delivery).finally(() =>
        this.#inFlight.delete(delivery.id),
      );
      this.#inFlight.set(delivery.id, work);
    }
  }

  /** Sends one delivery and records the result. Never rejects. */
  async #deliver(receiver: Receiver, delivery: DueDelivery): Promise<void> {
    try {
      const judgement = await this.#send(receiver, delivery);
      if (judgement) await this.#record(receiver, delivery, judgement);
    } catch (error) {
      this.#hasFault = true;
      const { appId: app, name: webhook } = this.#key;
      this.#deps.log.warn(
        { err: error, app, webhook, id: delivery.id },
        'a webhook delivery failed',
      );
    }
  }

  /**
   * Sends one delivery. Returns undefined if the breaker lets no request pass. A delivery that needs
   * no request does not ask the breaker, because it could not be its probe.
   */
  async #send(
    { endpoint, state }: Receiver,
    delivery: DueDelivery,
  ): Promise<Judgement | undefined> {
    const { db, clock } = this.#deps;
    const { isManual, createdAt } = delivery;
    if (!isManual && clock.now() - createdAt.getTime() > webhookLimits.maxAgeMs)
      return ended('expired');
    const data = await this.#query(() => dataOf(db, delivery));
    if (data === undefined) return ended('push_deleted');
    const permit = isManual ? undefined : state.breaker.acquire();
    if (!isManual && !permit) return undefined;
    try {
      const request = requestOf(endpoint, { delivery, data, nowMs: clock.now() });
      const result = await this.#clientOf(state).request(request);
      const judgement = judge(result, delivery, endpoint.format);
      await permit?.release({ requests: 1, failed: judgement.state === 'delivered' ? 0 : 1 });
      return judgement;
    } catch (error) {
      await permit?.release(undefined);
      throw error;
    }
  }

  async #record(
    { endpoint, state: remembered }: Receiver,
    delivery: DueDelivery,
    judgement: Judgement,
  ): Promise<void> {
    const { db, metrics, clock } = this.#deps;
    const { state, isAttempt, isGone, throttleMs } = judgement;
    if (throttleMs > 0) remembered.throttledUntilMs = clock.monotonicMs() + throttleMs;
    const isFailure = isAttempt && state !== 'delivered' && !delivery.isManual;
    await this.#query(() => {
      if (!isFailure) return recordAttempt(db, this.#key, delivery.id, judgement);
      return db.transaction(async (tx) => {
        await recordAttempt(tx, this.#key, delivery.id, judgement);
        await this.#countFailure(tx, endpoint, isGone);
      });
    });
    const isRecovered = state === 'delivered' && !delivery.isManual && this.#hasFailed;
    if (isFailure || isRecovered) this.#hasFailed = isFailure;
    if (isRecovered) await this.#query(() => clearFailures(db, this.#key));
    const outcome = state === 'waiting' ? 'retried' : state;
    metrics.webhookDeliveries.inc({ outcome });
  }

  /** Counts a failure of an endpoint, unless it was changed since the request. */
  async #countFailure(tx: Handle, endpoint: Endpoint, isGone: boolean): Promise<void> {
    const failed = await countFailure(tx, endpoint);
    if (!failed) return;
    if (isGone) return this.#switchOff(tx, 'gone');
    const { failingMs, failingAttempts } = webhookLimits;
    if (failed.failures < failingAttempts) return;
    if (this.#deps.clock.now() - failed.failingSince.getTime() >= failingMs)
      await this.#switchOff(tx, 'failing');
  }

  async #switchOff(tx: Handle, reason: OffReason): Promise<void> {
    await switchEndpointOff(this.#deps, tx, this.#key, reason);
    this.#endpoint = undefined;
    this.#queue = this.#queue.filter(({ isManual }) => isManual);
  }

  /** Ends the run. Returns false if it must continue. */
  async #end({ endpoint: { isEnabled }, state }: Receiver): Promise<boolean> {
    if (this.#queue.length > 0) return false;
    const pauseMs = isEnabled ? this.#pauseMs(state) : 0;
    const end = {
      dispatcher: this.#context.dispatcher,
      isEnabled,
      pauseMs: pauseMs > 0 ? pauseMs : undefined,
    };
    return this.#query(() => this.#deps.db.transaction((tx) => endRun(tx, this.#key, end)));
  }

  /** Gives the endpoint back if the run has not ended. */
  async #yield(): Promise<void> {
    if (this.#hasFault) await sleep(faultPauseMs, this.#context.stopped);
    const { dispatcher } = this.#context;
    await this.#query(() => releaseEndpoints(this.#deps.db, dispatcher, this.#key));
  }

  #clientOf(state: Remembered): HttpClient {
    const { timeoutMs: requestMs, concurrency: connections } = webhookLimits;
    state.client ??= createHttpClient({
      baseUrl: new URL(state.url).origin,
      connections,
      timing: { connectMs: requestMs, requestMs, drainMs: 1000 },
      clock: this.#deps.clock,
    });
    return state.client;
  }

  #query<T>(work: () => Promise<T>): Promise<T> {
    const { log } = this.#deps;
    const options = {
      log,
      message: 'database unavailable; webhooks wait',
      patienceMs: outagePatienceMs,
    };
    const key = JSON.stringify([this.#key.appId, this.#key.name]);
    return this.#context.statements.run(key, () => retryDuringOutage(options, work));
  }
}

/** Returns the end of a delivery that needs no request. */
const ended = (reason: string): Judgement => ({
  state: 'failed',
  status: null,
  reason,
  response: null,
  afterMs: null,
  isAttempt: false,
  isGone: false,
  throttleMs: 0,
});
