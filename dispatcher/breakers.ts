import { randomInt, randomUUID } from 'node:crypto';
import { Breaker, type BreakerTiming, type Showing } from '../shared/breaker.ts';
import { type Clock, sleep } from '../shared/clock.ts';
import type { Database } from '../shared/db/pool.ts';
import {
  deleteOldBreakerStates,
  forgetBreakerStates,
  hasClosedElsewhere,
  noteBreakerState,
} from '../shared/db/tables/breakers.ts';
import {
  type BreakerKey,
  type BreakerState,
  breakerIdOf,
  breakerStates,
  parseBreakerId,
} from '../shared/domain/breaker.ts';
import { profileConnectorIds } from '../shared/domain/labels.ts';
import type { Logger } from '../shared/logging.ts';
import type { Metrics } from '../shared/metrics.ts';
import type { Place } from '../shared/queue/consumer.ts';
import { Flights } from './flights.ts';
import { Forced } from './forced.ts';
import type { DeliverResult } from './task.ts';

/** Recipients of a large batch that a half-open breaker lets through to try the gateway. */
const probeRecipients = 10;

/** Batches that wait come back one after another, so that a long queue does not turn in step. */
const slotMs = 10;
const shortestWaitMs = 500;
const longestForcedWaitMs = 15_000;

/** A gateway that answered within this time may be sent to by many batches at once. */
const provenForMs = 60_000;
/** How long further batches wait in their place for the first answer of one that did not. */
const proofMs = 300;

const idleMs = 600_000;

/** One gateway as one profile of an app reaches it. */
interface Line {
  key: BreakerKey;
  breaker: Breaker;
  state: BreakerState;
  since: Date;
  usedAtMs: number;
  /** Where the queue of waiting batches ends, by the monotonic clock. */
  lastSlotMs: number;
  provenAtMs: number;
  inFlight: number;
  /** Resolves when a batch comes back. */
  news: PromiseWithResolvers<void>;
}

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
  /** So many batches of one gateway may drag (`flights.ts`); while they do, further ones wait. */
  maxDragging: number;
}

const showingOf = ({ showing }: DeliverResult): Showing => showing;

/** The breakers of this dispatcher, one per connector, app and profile (states: README.md). */
export class Breakers {
  readonly #options: BreakersOptions;
  readonly #dispatcher = randomUUID();
  readonly #lines = new Map<string, Line>();
  readonly #forced: Forced;
  readonly #flights: Flights;
  #notes: Promise<void> = Promise.resolve();

  constructor(options: BreakersOptions) {
    this.#options = options;
    this.#forced = new Forced(options.db, options.clock);
    this.#flights = new Flights({ clock: options.clock, forcedOpen: () => this.#forced.open() });
  }

  /** How long a batch has to wait before it may be sent, in ms; 0: it may go now. */
  async waitMs(key: BreakerKey): Promise<number> {
    if (!isWatched(key)) return 0;
    const order = await this.#forced.of(key);
    const line = this.#line(key);
    if (order?.forced === 'open') {
      // Short at first, so that a release is felt at once; longer with the time it lasts.
      const lastedMs = this.#options.clock.now() - order.since.getTime();
      return this.#slot(line, Math.min(lastedMs / 4, longestForcedWaitMs));
    }
    if (this.#isFull(line)) return this.#slot(line, 0);
    const isPassable = order?.forced === 'closed' || line.breaker.isPassable;
    return isPassable ? 0 : this.#slot(line, line.breaker.restMs);
  }

  /**
   * Sends a batch unless its breaker is against it. A gateway that has not answered lately gets one batch
   * at a time, and one whose batches drag no more of them: it does not hold every place of its connector
   * (promise 4). `place` is the one that the batch has.
   */
  async send(key: BreakerKey, send: SendBatch, place?: Place): Promise<Passage> {
    if (!isWatched(key)) return { kind: 'sent', result: await send(), isCounted: true };
    const order = await this.#forced.of(key);
    const line = this.#line(key);
    if (order?.forced === 'open' || this.#isFull(line)) return { kind: 'wait', afterMs: this.#slot(line, 0) };
    const track = <T>(work: (flight: SharedArrayBuffer) => Promise<T>) =>
      this.#flights.track(breakerIdOf(key), place, work);
    if (order?.forced === 'closed') {
      const result = await track((flight) => send(undefined, flight));
      return { kind: 'sent', result, isCounted: true };
    }
    if (!this.#isProven(line) && line.inFlight > 0) {
      await Promise.race([line.news.promise, sleep(proofMs)]);
      if (!this.#isProven(line) && line.inFlight > 0)
        return { kind: 'wait', afterMs: this.#slot(line, line.breaker.restMs) };
    }
    return track((flight) => this.#sendThrough(line, (slice) => send(slice, flight)));
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
  async tend(): Promise<void> {
    const nowMs = this.#options.clock.monotonicMs();
    for (const [id, line] of this.#lines) {
      if (line.breaker.state !== 'closed') {
        await this.#learn(line);
        this.#note(line);
      } else if (line.inFlight === 0 && nowMs - line.usedAtMs > idleMs) {
        line.breaker.close();
        this.#lines.delete(id);
      }
    }
    await this.#notes;
    await deleteOldBreakerStates(this.#options.db);
  }

  async close(): Promise<void> {
    this.#flights.close();
    for (const { breaker } of this.#lines.values()) breaker.close();
    await this.#notes;
    await forgetBreakerStates(this.#options.db, this.#dispatcher).catch(() => undefined);
  }

  async #sendThrough(line: Line, send: SendBatch): Promise<Passage> {
    const slice = line.breaker.state === 'half-open' ? probeRecipients : undefined;
    line.inFlight += 1;
    try {
      const run = await line.breaker.run(() => send(slice), showingOf);
      if (!run.hasRun) return { kind: 'wait', afterMs: this.#slot(line, line.breaker.restMs) };
      const { asked, troubled } = run.value.showing;
      if (asked > troubled) line.provenAtMs = this.#options.clock.monotonicMs();
      // While the gateway cannot be asked, a try costs nothing: else an hour's outage would use the budget up.
      return { kind: 'sent', result: run.value, isCounted: line.breaker.state === 'closed' };
    } finally {
      line.inFlight -= 1;
      line.news.resolve();
      line.news = Promise.withResolvers();
    }
  }

  /** Half-open without traffic of its own, a breaker would stay so while another dispatcher sends. */
  async #learn({ breaker, key, since }: Line): Promise<void> {
    if (breaker.state !== 'half-open') return;
    const seen = { dispatcher: this.#dispatcher, since };
    if (await hasClosedElsewhere(this.#options.db, key, seen)) breaker.trust();
  }

  #isFull({ key }: Line): boolean {
    return this.#flights.draggingOf(breakerIdOf(key)) >= this.#options.maxDragging;
  }

  #isProven({ provenAtMs }: Line): boolean {
    return this.#options.clock.monotonicMs() - provenAtMs < provenForMs;
  }

  /** Milliseconds until a waiting batch comes back: behind those that wait already, with jitter. */
  #slot(line: Line, restMs: number): number {
    const nowMs = this.#options.clock.monotonicMs();
    const leastMs = Math.max(restMs, shortestWaitMs);
    line.lastSlotMs = Math.max(line.lastSlotMs + slotMs, nowMs + leastMs);
    return Math.ceil(line.lastSlotMs - nowMs + randomInt(Math.ceil(leastMs / 4)));
  }

  #line(key: BreakerKey): Line {
    const id = breakerIdOf(key);
    const line = this.#lines.get(id) ?? this.#newLine(id, key);
    line.usedAtMs = this.#options.clock.monotonicMs();
    return line;
  }

  #newLine(id: string, key: BreakerKey): Line {
    const { clock, timing } = this.#options;
    const line: Line = {
      key,
      breaker: new Breaker(
        timing,
        () => clock.monotonicMs(),
        (state) => this.#changed(line, state),
      ),
      state: 'closed',
      since: new Date(clock.now()),
      usedAtMs: 0,
      lastSlotMs: 0,
      provenAtMs: Number.NEGATIVE_INFINITY,
      inFlight: 0,
      news: Promise.withResolvers(),
    };
    this.#lines.set(id, line);
    return line;
  }

  #changed(line: Line, state: BreakerState): void {
    line.state = state;
    line.since = new Date(this.#options.clock.now());
    if (state === 'closed') line.lastSlotMs = 0;
    if (state === 'open') line.provenAtMs = Number.NEGATIVE_INFINITY;
    this.#options.log.warn({ breaker: breakerIdOf(line.key), state }, 'a breaker changed its state');
    this.#note(line);
  }

  #note({ key, state, since }: Line): void {
    const { db, log } = this.#options;
    const seen = { dispatcher: this.#dispatcher, state, since };
    this.#notes = this.#notes
      .then(() => noteBreakerState(db, key, seen))
      .catch((error: unknown) => log.warn({ err: error }, 'the state of a breaker could not be written'));
  }
}

/** Our own channel has no gateway that could be down: it writes to our database. */
function isWatched({ connector }: BreakerKey): boolean {
  return profileConnectorIds.some((id) => id === connector);
}
