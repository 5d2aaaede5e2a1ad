import { randomUUID } from 'node:crypto';
import type { BreakerTiming, HealthSample } from '../../shared/breaker.ts';
import { type Clock, sleep } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import {
  deleteBreakerStatesOf,
  deleteOldBreakerStates,
  hasClosedElsewhere,
  saveBreakerState,
} from '../../shared/db/tables/gateways/breakers.ts';
import {
  type BreakerKey,
  type BreakerState,
  breakerIdOf,
  breakerStates,
  parseBreakerId,
} from '../../shared/domain/breaker.ts';
import { profileConnectorIds } from '../../shared/domain/labels.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { Permit } from '../../shared/queue/consumer.ts';
import type { DeliverResult } from '../sending/task.ts';
import { GatewayFailures } from './gateway-failures.ts';
import { GatewayQueue } from './gateway-queue.ts';
import { InFlightBatches } from './in-flight-batches.ts';
import { Overrides } from './overrides.ts';

/** Recipients of a large batch that a half-open breaker lets through to try the gateway. */
const probeRecipients = 10;

/** A release calls those who wait back; this is for the case that the call is lost. */
const longestForcedWaitMs = 15_000;

/** What was being put back while the others were called back is called back after this. */
const stragglerMs = 500;

/** A batch was sent, and whether its tries count; or it has to wait. */
export type Passage =
  | { kind: 'sent'; result: DeliverResult; isCounted: boolean }
  | { kind: 'wait'; afterMs: number };

/** Sends a batch, or of a large one only so many recipients; `flight` is the memory to watch it by. */
export type SendBatch = (slice?: number, flight?: SharedArrayBuffer) => Promise<DeliverResult>;

export interface BreakersOptions {
  db: Database;
  clock: Clock;
  log: Logger;
  timing: BreakerTiming;
  /** So many batches of one gateway may drag (`in-flight-batches.ts`); while they do, further ones wait. */
  maxSlow: number;
  /** Has the batches that wait for a gateway come back now. */
  wakeWaiting(key: BreakerKey): Promise<void>;
}

const showingOf = ({ health: showing }: DeliverResult): HealthSample => showing;

/** The breakers of this dispatcher, one per connector, app and profile (states: README.md). */
export class Breakers {
  readonly #options: BreakersOptions;
  readonly #dispatcher = randomUUID();
  readonly #lines = new Map<string, GatewayQueue>();
  readonly #forced: Overrides;
  readonly #flights: InFlightBatches;
  readonly #failures: GatewayFailures;
  readonly #stop = new AbortController();
  #notes: Promise<void> = Promise.resolve();

  constructor(options: BreakersOptions) {
    this.#options = options;
    this.#forced = new Overrides(options.db, options.clock);
    this.#failures = new GatewayFailures(options);
    this.#flights = new InFlightBatches({ clock: options.clock, forcedOpen: () => this.#forced.open() });
  }

  /** How long a batch has to wait before it may be sent, in ms; 0: it may go now. */
  async waitMs(key: BreakerKey): Promise<number> {
    if (!isWatched(key)) return 0;
    const order = await this.#forced.of(key);
    const line = this.#line(key);
    if (order?.forced === 'open') {
      const lastedMs = this.#options.clock.now() - order.since.getTime();
      return line.slot(Math.min(lastedMs / 4, longestForcedWaitMs));
    }
    if (this.#isFull(line)) return line.slot(0);
    const isPassable = order?.forced === 'closed' || line.breaker.isPassable;
    return isPassable ? 0 : line.slot(line.breaker.cooldownLeftMs);
  }

  /**
   * Sends a batch unless its breaker is against it. A gateway that has not answered lately gets one batch
   * at a time, and one whose batches drag no more of them: it does not hold every place of its connector
   * (protocol/delivery.md#promise-4). `place` is the one that the batch has.
   */
  async send(key: BreakerKey, send: SendBatch, place?: Permit): Promise<Passage> {
    if (!isWatched(key)) return { kind: 'sent', result: await send(), isCounted: true };
    const order = await this.#forced.of(key);
    const line = this.#line(key);
    if (order?.forced === 'open' || this.#isFull(line)) return { kind: 'wait', afterMs: line.slot(0) };
    const track = <T>(work: (flight: SharedArrayBuffer) => Promise<T>) =>
      this.#flights.track(line.id, place, work);
    if (order?.forced === 'closed') {
      const result = await track((flight) => send(undefined, flight));
      this.#failures.saw(line, result);
      return { kind: 'sent', result, isCounted: true };
    }
    if (!(await line.canProbe())) return { kind: 'wait', afterMs: line.slot(line.breaker.cooldownLeftMs) };
    return line.track(() => track((flight) => this.#sendThrough(line, (slice) => send(slice, flight))));
  }

  /** An operator has forced or released something: known at once, and those who wait come back. */
  async refreshOverrides(): Promise<void> {
    this.#forced.forget();
    const forced = await this.#forced.all();
    for (const line of this.#lines.values())
      if (line.isAwaited && forced.get(line.id)?.forced !== 'open') this.#wakeWaiting(line);
  }

  /** Writes the states into the gauge; what is forced shows as what it was forced to. */
  async reportTo(metrics: Metrics): Promise<void> {
    const forced = await this.#forced.all();
    const shown = new Map<string, BreakerState>();
    for (const [id, line] of this.#lines) shown.set(id, line.breaker.state);
    for (const [id, order] of forced) shown.set(id, order.forced);
    metrics.breakerState.reset();
    for (const [id, state] of shown) {
      const key = parseBreakerId(id);
      if (!key) continue;
      const { connector, appId: app, profile } = key;
      metrics.breakerState.set({ connector, app, profile }, breakerStates.indexOf(state));
    }
  }

  /** Keeps what is written down alive and lets go of breakers that nobody uses. */
  async maintain(): Promise<void> {
    for (const [id, line] of this.#lines) {
      if (line.breaker.state !== 'closed') {
        await this.#learn(line);
        this.#note(line);
      } else if (line.isIdle) {
        line.breaker.close();
        this.#lines.delete(id);
      }
    }
    await this.#notes;
    await this.#failures.maintain(this.#lines.values());
    await deleteOldBreakerStates(this.#options.db);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#flights.close();
    for (const { breaker } of this.#lines.values()) breaker.close();
    await this.#notes;
    await this.#failures.close();
    await deleteBreakerStatesOf(this.#options.db, this.#dispatcher).catch(() => undefined);
  }

  async #sendThrough(line: GatewayQueue, send: SendBatch): Promise<Passage> {
    const slice = line.breaker.state === 'half-open' ? probeRecipients : undefined;
    const work = async () => {
      const result = await send(slice);
      // Before it is judged: what opens the breaker is told with its reason.
      this.#failures.saw(line, result);
      return result;
    };
    const run = await line.breaker.run(work, showingOf);
    if (!run.hasRun) return { kind: 'wait', afterMs: line.slot(line.breaker.cooldownLeftMs) };
    const { asked, failed: troubled } = run.value.health;
    if (asked > troubled) line.markHealthy();
    // While the gateway cannot be asked, a try costs nothing: else an hour's outage would use the budget up.
    return { kind: 'sent', result: run.value, isCounted: line.breaker.state === 'closed' };
  }

  /** Half-open without traffic of its own, a breaker would stay so while another dispatcher sends. */
  async #learn({ breaker, key, since }: GatewayQueue): Promise<void> {
    if (breaker.state !== 'half-open') return;
    const seen = { dispatcher: this.#dispatcher, since };
    if (await hasClosedElsewhere(this.#options.db, key, seen)) breaker.closeByPeer();
  }

  #isFull({ id }: GatewayQueue): boolean {
    return this.#flights.slowOf(id) >= this.#options.maxSlow;
  }

  #line(key: BreakerKey): GatewayQueue {
    const id = breakerIdOf(key);
    const line = this.#lines.get(id) ?? this.#newLine(key);
    return line.use();
  }

  #newLine(key: BreakerKey): GatewayQueue {
    const { clock, timing } = this.#options;
    const line: GatewayQueue = new GatewayQueue(key, {
      clock,
      timing,
      onChange: (state) => this.#changed(line, state),
    });
    this.#lines.set(line.id, line);
    return line;
  }

  #changed(line: GatewayQueue, state: BreakerState): void {
    const reason = state === 'closed' ? undefined : this.#failures.reasonOf(line);
    this.#options.log.warn({ breaker: line.id, state, reason }, 'a breaker changed its state');
    this.#note(line);
    if (state === 'closed' && line.isAwaited) this.#wakeWaiting(line);
  }

  /** Twice: a batch that was just being put back would else wait for its time. */
  #wakeWaiting(line: GatewayQueue): void {
    const { wakeWaiting, log } = this.#options;
    const call = async () => {
      line.forgetSlots();
      await wakeWaiting(line.key);
      await sleep(stragglerMs, this.#stop.signal);
      if (!this.#stop.signal.aborted) await wakeWaiting(line.key);
    };
    call().catch((error: unknown) => log.warn({ err: error }, 'waiting batches could not be called back'));
  }

  #note({ key, breaker, since }: GatewayQueue): void {
    const { db, log } = this.#options;
    const seen = { dispatcher: this.#dispatcher, state: breaker.state, since };
    this.#notes = this.#notes
      .then(() => saveBreakerState(db, key, seen))
      .catch((error: unknown) => log.warn({ err: error }, 'the state of a breaker could not be written'));
  }
}

/** Our own channel has no gateway that could be down: it writes to our database. */
function isWatched({ connector }: BreakerKey): boolean {
  return profileConnectorIds.some((id) => id === connector);
}
