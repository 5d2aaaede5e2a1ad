import CircuitBreaker from 'opossum';
import type { BreakerState } from './domain/breaker.ts';

export interface BreakerTiming {
  /** Time from opening to the first probe. */
  coolDownMs: number;
  /** Maximum cooldown. Each failed probe doubles the cooldown up to this value. */
  maxCooldownMs: number;
  /** Length of the time window in which groups count. */
  windowMs: number;
  /** Minimum number of groups in the window before their failure rate can open the breaker. */
  minGroups: number;
  /** A group with at least this many failed requests opens the breaker at once. */
  heavyGroup: number;
}

export const defaultBreakerTiming: BreakerTiming = {
  coolDownMs: 5000,
  maxCooldownMs: 30_000,
  windowMs: 30_000,
  minGroups: 3,
  heavyGroup: 50,
};

/** Health of a gateway, measured by one group of requests. */
export interface HealthSample {
  /**
   * Number of requests that say something about the gateway: they got a response or were lost on
   * the way.
   */
  requests: number;
  /** Number of these requests that the gateway could not answer. */
  failed: number;
}

/** Permit to send one group of requests. The holder must release it exactly once. */
export interface BreakerPermit {
  /**
   * Releases the permit with the group's sample. If `sample` is undefined, the group failed because
   * of this process, which says nothing about the gateway. Resolves when the state of the breaker
   * is updated.
   */
  release(sample: HealthSample | undefined): Promise<void>;
}

/** Error that makes opossum count a group as failed. */
class GroupFailed extends Error {
  override name = 'GroupFailed';
}

type Group = () => Promise<void>;

/**
 * Circuit breaker for groups of requests (develop/architecture.md#breakers). If it is closed, all
 * groups get a permit. If it is open, no group gets a permit until the cooldown has ended. If it is
 * half-open, one group is the probe, which decides whether it closes. Only this file uses opossum.
 */
export class Breaker {
  readonly #timing: BreakerTiming;
  /**
   * opossum reads `resetTimeout` each time it opens, so changing this value makes the cooldown
   * grow.
   */
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
      // The senders have their own timeouts and report an outcome for each recipient.
      timeout: false,
      resetTimeout: timing.coolDownMs,
      // opossum opens above its threshold, but our rule opens at exactly one half too.
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
      this.#options.resetTimeout = Math.min(coolDownMs * 2, timing.maxCooldownMs);
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

  /** True if a group would get a permit now. A half-open breaker gives only one permit. */
  get isPassable(): boolean {
    return this.#circuit.closed || (this.#circuit.halfOpen && this.#circuit.pendingClose);
  }

  /** Milliseconds until the next probe is allowed; 0 if the breaker is not open. */
  get cooldownLeftMs(): number {
    return this.#circuit.opened ? Math.max(0, this.#probeAtMs - this.#monotonicMs()) : 0;
  }

  /** Returns a permit for one group; undefined if the breaker gives none. */
  acquire(): BreakerPermit | undefined {
    const isProbe = this.#circuit.halfOpen;
    const group = Promise.withResolvers<void>();
    let isAdmitted = false;
    // opossum calls the function before `fire` returns, or not at all.
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

  /** Closes the breaker because the probe of another process has succeeded. */
  closeByPeer(): void {
    if (this.isPassable) this.#circuit.close();
  }

  /** Stops the timers. */
  close(): void {
    this.#circuit.shutdown();
  }

  /**
   * Decides from its sample whether a group has failed. Opens the breaker at once if many requests
   * failed. A probe without a response has failed.
   */
  #hasFailed(sample: HealthSample | undefined, isProbe: boolean): boolean {
    if (!sample || sample.requests === 0) return isProbe;
    if (!isUnhealthy(sample)) return false;
    if (sample.failed >= this.#timing.heavyGroup) this.#circuit.open();
    return true;
  }
}

/** True if a sample shows that the gateway is not usable: at least half of the requests failed. */
export const isUnhealthy = ({ requests, failed }: HealthSample): boolean => failed * 2 >= requests;
