import { randomUUID } from 'node:crypto';
import type { BreakerTiming } from '../../shared/breaker.ts';
import { isDoneWithin, minuteMs, sleep } from '../../shared/clock.ts';
import type { Listener } from '../../shared/db/listener.ts';
import {
  claimEndpoints,
  type EndpointKey,
  releaseEndpoints,
  renewLeases,
  webhookTopic,
} from '../../shared/db/tables/webhooks.ts';
import { Semaphore } from '../../shared/semaphore.ts';
import { EndpointRun, EndpointStates, endpointTiming, type RunDeps } from './endpoint-run.ts';

/** Limits of one dispatcher. Tests use other ones. */
export interface SenderLimits {
  /** Endpoints that are sent to at the same time. An endpoint that does not answer leaves soon. */
  runs: number;
  /** Statements at the same time, of the connections that pushes need too. */
  statements: number;
  /** Time after which another dispatcher takes over the endpoints of one that has crashed. */
  leaseMs: number;
  renewMs: number;
  /** Interval of the search for due endpoints, if nothing wakes it. */
  pollMs: number;
  timing: BreakerTiming;
}

const defaultLimits: SenderLimits = {
  runs: 200,
  statements: 2,
  leaseMs: 15_000,
  renewMs: 3000,
  pollMs: 1000,
  timing: endpointTiming,
};

const claimedAtOnce = 50;
/** Minimum time between two searches. Events that are written within it share a search. */
const restMs = 10;
/** Time for requests in flight to finish when the dispatcher stops. */
const graceMs = 3000;
/** Age at which an unused breaker is forgotten. It is longer than its longest cooldown. */
const unusedMs = 10 * minuteMs;

/**
 * Sends the deliveries of webhooks. The tables are the queue: `webhook.due_at` says which endpoints
 * have something to send, and a lease makes one dispatcher at a time send to an endpoint. pg-boss
 * would need a job for each delivery. An endpoint that is down with ten thousand waiting deliveries
 * would then rewrite ten thousand jobs at each probe of its breaker, and its jobs would occupy the
 * slots of other endpoints.
 */
export class WebhookSender {
  readonly #deps: RunDeps;
  readonly #limits: SenderLimits;
  readonly #dispatcher = randomUUID();
  readonly #states: EndpointStates;
  readonly #statements: Semaphore;
  readonly #runs = new Map<string, { key: EndpointKey; done: Promise<void> }>();
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #loop: Promise<void> | undefined;
  #renewal: NodeJS.Timeout | undefined;
  #unlisten: (() => void) | undefined;
  /** True if the last search found as many endpoints as it may. */
  #othersWait = false;

  constructor(deps: RunDeps, limits: Partial<SenderLimits> = {}) {
    this.#deps = deps;
    this.#limits = { ...defaultLimits, ...limits };
    this.#states = new EndpointStates(deps, this.#limits.timing);
    this.#statements = new Semaphore({
      concurrency: this.#limits.statements,
      maxWaiting: Number.MAX_SAFE_INTEGER,
    });
  }

  async start(listener: Listener): Promise<void> {
    this.#unlisten = await listener.listen(webhookTopic, () => this.#wake.abort());
    const { db, log } = this.#deps;
    this.#renewal = setInterval(() => {
      const keys = [...this.#runs.values()].map(({ key }) => key);
      renewLeases(db, this.#lease, keys).catch((error: unknown) =>
        log.warn({ err: error }, 'could not renew the leases of webhooks'),
      );
    }, this.#limits.renewMs);
    this.#loop = this.#run();
  }

  /** Waits up to 3 s for requests in flight, and gives all endpoints back. */
  async stop(): Promise<void> {
    this.#unlisten?.();
    this.#stop.abort();
    this.#wake.abort();
    await this.#loop;
    await isDoneWithin(Promise.all([...this.#runs.values()].map(({ done }) => done)), graceMs);
    clearInterval(this.#renewal);
    await releaseEndpoints(this.#deps.db, this.#dispatcher).catch(() => undefined);
    await this.#states.forgetUnused(0);
  }

  get #lease() {
    return { dispatcher: this.#dispatcher, leaseMs: this.#limits.leaseMs };
  }

  async #run(): Promise<void> {
    const { log } = this.#deps;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      const isFull = await this.#claim().catch((error: unknown) => {
        log.warn({ err: error }, 'could not look for due webhooks');
        return false;
      });
      await this.#states.forgetUnused(unusedMs);
      await sleep(restMs, this.#stop.signal);
      if (!isFull) await sleep(this.#limits.pollMs, this.#wake.signal);
    }
  }

  /** Starts runs on due endpoints. Returns whether more may be due. */
  async #claim(): Promise<boolean> {
    const free = this.#limits.runs - this.#runs.size;
    this.#othersWait = free <= 0;
    if (free <= 0) return false;
    const limit = Math.min(free, claimedAtOnce);
    const claimed = await claimEndpoints(this.#deps.db, this.#lease, limit);
    for (const key of claimed) this.#begin(key);
    return claimed.length === limit;
  }

  #begin(key: EndpointKey): void {
    const { appId: app, name: webhook } = key;
    const id = JSON.stringify([app, webhook]);
    const before = this.#runs.get(id)?.done ?? Promise.resolve();
    const context = {
      dispatcher: this.#dispatcher,
      statements: this.#statements,
      stopped: this.#stop.signal,
      othersWait: () => this.#othersWait,
    };
    const done = before
      .then(() => new EndpointRun(this.#deps, key, context, this.#states).run())
      .catch((error: unknown) =>
        this.#deps.log.warn({ err: error, app, webhook }, 'a webhook cannot be sent to'),
      )
      .finally(() => {
        if (this.#runs.get(id)?.done === done) this.#runs.delete(id);
        if (this.#othersWait) this.#wake.abort();
      });
    this.#runs.set(id, { key, done });
  }
}
