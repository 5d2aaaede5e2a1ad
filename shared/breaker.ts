import CircuitBreaker from 'opossum';
import type { BreakerState } from './domain/breaker.ts';

export interface BreakerTiming {
  /** From opening to the first probe. */
  coolDownMs: number;
  /** Each failed probe doubles the cool-down, up to this. */
  longestCoolDownMs: number;
  /** Length of the window whose groups count. */
  windowMs: number;
  /** Groups in the window before their failure rate can open the breaker. */
  minGroups: number;
  /** A single failed group with this many failed requests opens the breaker at once. */
  heavyGroup: number;
}

export const defaultBreakerTiming: BreakerTiming = {
  coolDownMs: 5000,
  longestCoolDownMs: 30_000,
  windowMs: 30_000,
  minGroups: 3,
  heavyGroup: 50,
};

/** Health of a gateway, measured by one group of requests. */
export interface HealthSample {
  /** Requests that tell something: answered, or lost on the way. */
  asked: number;
  /** Requests among them that the gateway could not answer. */
  failed: number;
}

/** Permission to send one group of requests. The holder releases it exactly once. */
export interface BreakerPermit {
  /**
   * Gives the permit back with the group's sample; without one, the group failed for a reason of
   * ours, which says nothing about the gateway. Resolves when the breaker has its new state.
   */
  release(sample: HealthSample | undefined): Promise<void>;
}

/** Error for the library only: the breaker's way to count a group as failed. */
class GroupFailed extends Error {
  override name = 'GroupFailed';
}

type Group = () => Promise<void>;

/**
 * A circuit breaker for groups of requests (develop/architecture.md#breakers). Closed: every group
 * gets a permit. Open: no group does until the cool-down is over. Half-open: one group is the probe
 * and decides. Only this file uses opossum.
 */
export class Breaker {
  readonly #timing: BreakerTiming;
  /** The library reads `resetTimeout` each time it opens: this is how the cool-down grows. */
  readonly #options: CircuitBreaker.Options<[Group]> & { resetTimeout: number };
  readonly #circuit: CircuitBreaker<[Group], void>;
  readonly #monotonicMs: () => number;
  #probeAtMs = 0;

  constructor(
    timing: BreakerTiming,
    monotonicMs: () => number,
    onChange: (state: BreakerState) => void,
  ) {
    this.#timing = timing;
    this.#monotonicMs = monotonicMs;
    this.#options = {
      // The senders have timeouts of their own and report an outcome for each recipient.
      timeout: false,
      resetTimeout: timing.coolDownMs,
      // The library opens above its threshold, the rule opens from one half on.
      errorThresholdPercentage: 49.9,
      volumeThreshold: timing.minGroups,
      rollingCountTimeout: timing.windowMs,
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
    };
    this.#circuit = new CircuitBreaker((group: Group) => group(), this.#options);
    this.#circuit.on('open', () => {
      const coolDownMs = this.#options.resetTimeout;
      this.#probeAtMs = monotonicMs() + coolDownMs;
      this.#options.resetTimeout = Math.min(coolDownMs * 2, timing.longestCoolDownMs);
      onChange('open');
    });
    this.#circuit.on('halfOpen', () => onChange('half-open'));
    this.#circuit.on('close', () => {
      this.#options.resetTimeout = timing.coolDownMs;
      onChange('closed');
    });
  }

  get state(): BreakerState {
    if (this.#circuit.closed) return 'closed';
    return this.#circuit.halfOpen ? 'half-open' : 'open';
  }

  /** Whether a group would get a permit now; of a half-open breaker only the first one does. */
  get isPassable(): boolean {
    return this.#circuit.closed || (this.#circuit.halfOpen && this.#circuit.pendingClose);
  }

  /** Milliseconds until the next probe may be sent; 0 unless the breaker is open. */
  get cooldownLeftMs(): number {
    return this.#circuit.opened ? Math.max(0, this.#probeAtMs - this.#monotonicMs()) : 0;
  }

  /** Returns a permit for one group; undefined while the breaker lets none pass. */
  acquire(): BreakerPermit | undefined {
    const isProbe = this.#circuit.halfOpen;
    const group = Promise.withResolvers<void>();
    let isAdmitted = false;
    // The library calls the function before `fire` returns, or not at all.
    const settled = this.#circuit
      .fire(() => {
        isAdmitted = true;
        return group.promise;
      })
      .catch(() => undefined);
    if (!isAdmitted) return undefined;
    return {
      release: (sample) => {
        if (this.#hasFailed(sample, isProbe)) group.reject(new GroupFailed());
        else group.resolve();
        return settled;
      },
    };
  }

  /** Closes the breaker after another process had a successful probe. */
  closeByPeer(): void {
    if (this.isPassable) this.#circuit.close();
  }

  /** Ends its timers. */
  close(): void {
    this.#circuit.shutdown();
  }

  /**
   * Judges a group by its sample; opens the breaker at once for a heavy one. A probe without an
   * answer has failed.
   */
  #hasFailed(sample: HealthSample | undefined, isProbe: boolean): boolean {
    if (!sample || sample.asked === 0) return isProbe;
    if (!isUnhealthy(sample)) return false;
    if (sample.failed >= this.#timing.heavyGroup) this.#circuit.open();
    return true;
  }
}

/**
 * Whether a sample shows a gateway that cannot be used: at least half of what was asked has failed.
 */
export const isUnhealthy = ({ asked, failed }: HealthSample): boolean => failed * 2 >= asked;
