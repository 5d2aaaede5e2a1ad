import { isIPv6 } from 'node:net';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import type { ChannelLimits } from './limits.ts';

/** Where connections come from, and how many. */
export interface Origin {
  readonly address: string;
  connections: number;
  /** Asked for in this minute, refused ones too. */
  upgrades: number;
}

export type AdmissionLimits = Pick<
  ChannelLimits,
  'connections' | 'connectionsPerAddress' | 'upgradesPerAddress'
>;

const windowMs = 60_000;
/** A place may be free again this soon. */
const retryAfterSeconds = 10;

/**
 * Whom connections are counted for. Who has one address of IPv6 has a network of 2^64 of them (RFC 6177),
 * and would else never be counted twice.
 */
export function originOf(address: string): string {
  if (!isIPv6(address) || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? 0 : tail.split(':').length;
  const zeros = tail === undefined ? 0 : 8 - front.length - back;
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...(tail?.split(':') ?? [])];
  return groups.slice(0, 4).join(':');
}

/** How many connections this process holds and is asked for, by remote address; decides on further ones. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #origins = new Map<string, Origin>();
  #connections = 0;
  #refused = 0;
  #windowEndsAtMs = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Counts one upgrade. Gives where it comes from; throws 429 or 503, with when to come again. */
  ask(address: string, nowMs: number): Origin {
    const origin = this.#originAt(originOf(address));
    origin.upgrades += 1;
    const { connections, connectionsPerAddress, upgradesPerAddress } = this.#limits;
    const secondsLeft = Math.max(1, Math.ceil((this.#windowEndsAtMs - nowMs) / 1000));
    if (origin.upgrades > upgradesPerAddress) throw this.#refuse('tooManyRequests', secondsLeft);
    if (origin.connections >= connectionsPerAddress) throw this.#refuse('tooManyRequests', retryAfterSeconds);
    if (this.#connections >= connections) throw this.#refuse('unavailable', retryAfterSeconds);
    return origin;
  }

  entered(origin: Origin): void {
    origin.connections += 1;
    this.#connections += 1;
  }

  left(origin: Origin): void {
    origin.connections -= 1;
    this.#connections -= 1;
  }

  /** Begins the next minute when it is time. Gives how many were refused in the one that ended. */
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

  #originAt(address: string): Origin {
    const known = this.#origins.get(address);
    if (known) return known;
    const origin = { address, connections: 0, upgrades: 0 };
    this.#origins.set(address, origin);
    return origin;
  }
}
