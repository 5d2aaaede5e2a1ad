import CircuitBreaker from 'opossum';
import type { BreakerState } from './domain/breaker.ts';

export interface BreakerTiming {
  /** From opening to the first probe. */
  coolDownMs: number;
  /** Each probe that fails doubles the cool-down, up to this. */
  longestCoolDownMs: number;
  /** How far back groups are looked at. */
  windowMs: number;
  /** So many groups must have been sent before their share opens it. */
  minGroups: number;
  /** A single group that shows trouble with so many requests opens it at once. */
  heavyGroup: number;
}

export const defaultBreakerTiming: BreakerTiming = {
  coolDownMs: 5000,
  longestCoolDownMs: 30_000,
  windowMs: 30_000,
  minGroups: 3,
  heavyGroup: 50,
};

/** What a group of requests showed of the one who was asked. */
export interface HealthSample {
  /** Requests that show something: answered, or lost on the way. */
  asked: number;
  /** Of these, those that show that it cannot be asked now. */
  failed: number;
}

/** What became of a group: it ran, or the breaker did not let it through. */
export type Run<T> = { hasRun: true; value: T } | { hasRun: false };

/** Told to the library, never to the caller, who gets the group's own result. */
class ProbeFailed extends Error {
  override name = 'Trouble';
}

type Group = () => Promise<void>;

/**
 * A circuit breaker around groups of requests (develop/architecture.md#breakers). Closed: groups run. Open: none does, until
 * the cool-down is over. Half-open: one runs as a probe and decides. The only home of opossum.
 */
export class Breaker {
  readonly #timing: BreakerTiming;
  /** The library reads `resetTimeout` each time it opens: this is how the cool-down grows. */
  readonly #options: CircuitBreaker.Options<[Group]> & { resetTimeout: number };
  readonly #circuit: CircuitBreaker<[Group], void>;
  readonly #monotonicMs: () => number;
  #probeAtMs = 0;

  constructor(timing: BreakerTiming, monotonicMs: () => number, onChange: (state: BreakerState) => void) {
    this.#timing = timing;
    this.#monotonicMs = monotonicMs;
    this.#options = {
      // Whoever sends has timeouts of his own and gives an outcome for each recipient: never cut short.
      timeout: false,
      resetTimeout: timing.coolDownMs,
      // The library opens above its threshold, the rule says from half on.
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

  /** Whether a group would be let through now: half-open, the first one only. */
  get isPassable(): boolean {
    return this.#circuit.closed || (this.#circuit.halfOpen && this.#circuit.pendingClose);
  }

  /** Milliseconds until the next probe may be made; 0 when there is nothing to wait for. */
  get cooldownLeftMs(): number {
    return this.#circuit.opened ? Math.max(0, this.#probeAtMs - this.#monotonicMs()) : 0;
  }

  /** Runs a group if it may pass and judges it by what it showed. Rejects with the group's own error. */
  async run<T>(work: () => Promise<T>, showingOf: (value: T) => HealthSample): Promise<Run<T>> {
    const held: { end?: { value: T } | { error: unknown } } = {};
    const group = async () => {
      const isProbe = this.#circuit.halfOpen;
      try {
        held.end = { value: await work() };
      } catch (error) {
        held.end = { error };
        // Something of ours broke: that says nothing against the gateway, but a probe it was not.
        if (isProbe) throw new ProbeFailed();
        return;
      }
      this.#judge(showingOf(held.end.value), isProbe);
    };
    await this.#circuit.fire(group).catch(() => undefined);
    if (!held.end) return { hasRun: false };
    if ('error' in held.end) throw held.end.error;
    return { hasRun: true, value: held.end.value };
  }

  /** Another process has asked successfully: what this one waits to find out is known. */
  closeByPeer(): void {
    if (this.isPassable) this.#circuit.close();
  }

  /** Ends its timers. */
  close(): void {
    this.#circuit.shutdown();
  }

  #judge({ asked, failed }: HealthSample, isProbe: boolean): void {
    // Half of what was asked (contract of a group); a probe that asked nothing has proved nothing.
    const isTrouble = asked === 0 ? isProbe : failed * 2 >= asked;
    if (!isTrouble) return;
    if (failed >= this.#timing.heavyGroup) this.#circuit.open();
    throw new ProbeFailed();
  }
}
