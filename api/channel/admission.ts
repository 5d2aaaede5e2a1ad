import { Refusal } from '../../shared/domain/errors/errors.ts';
import { networkOf } from '../../shared/domain/ip-address.ts';
import type { ChannelLimits } from './limits.ts';

/** Source of connections, with its counts. */
export interface Origin {
  /** IP address, of IPv6 the /64 prefix. */
  readonly address: string;
  connections: number;
  /** Upgrades requested in this minute, including refused ones. */
  upgrades: number;
}

export type AdmissionLimits = Pick<
  ChannelLimits,
  'connections' | 'connectionsPerAddress' | 'upgradesPerAddress'
>;

const windowMs = 60_000;
const retryAfterSeconds = 10;

/** Admission control: limits connections and upgrades of this process, in total and by remote address. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #origins = new Map<string, Origin>();
  #connections = 0;
  #refused = 0;
  #windowEndsAtMs = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Counts an upgrade and returns its origin. Throws 429 or 503 with a retry time when a limit is reached. */
  admit(address: string, nowMs: number): Origin {
    const origin = this.#originOf(networkOf(address));
    origin.upgrades += 1;
    const { connections, connectionsPerAddress, upgradesPerAddress } = this.#limits;
    const secondsLeft = Math.max(1, Math.ceil((this.#windowEndsAtMs - nowMs) / 1000));
    if (origin.upgrades > upgradesPerAddress) throw this.#refuse('tooManyRequests', secondsLeft);
    if (origin.connections >= connectionsPerAddress) throw this.#refuse('tooManyRequests', retryAfterSeconds);
    if (this.#connections >= connections) throw this.#refuse('unavailable', retryAfterSeconds);
    return origin;
  }

  onOpened(origin: Origin): void {
    origin.connections += 1;
    this.#connections += 1;
  }

  onClosed(origin: Origin): void {
    origin.connections -= 1;
    this.#connections -= 1;
  }

  /** Starts the next minute when it is due. Returns the number of upgrades refused in the one that ended. */
  tick(nowMs: number): number {
    if (nowMs < this.#windowEndsAtMs) return 0;
    this.#windowEndsAtMs = nowMs + windowMs;
    for (const origin of this.#origins.values()) {
      origin.upgrades = 0;
      if (origin.connections === 0) this.#origins.delete(origin.address);
    }
    const refused = this.#refused;
    this.#refused = 0;
    return refused;
  }

  #refuse(kind: 'tooManyRequests' | 'unavailable', retryAfter: number): Refusal {
    this.#refused += 1;
    return new Refusal(kind, { retryAfterSeconds: retryAfter });
  }

  #originOf(address: string): Origin {
    const known = this.#origins.get(address);
    if (known) return known;
    const origin = { address, connections: 0, upgrades: 0 };
    this.#origins.set(address, origin);
    return origin;
  }
}
