import type {
  DayQuota,
  GatewayCall,
  SenderContext,
  StoredToken,
  TokenStore,
} from '../../../connectors/contract/connector.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';

/** Sender context whose shared state is in memory instead of a database. */
export interface TestContext extends SenderContext {
  /** Gateway calls so far. */
  calls: GatewayCall[];
  tokens: MemoryTokens;
  quota: MemoryQuota;
}

export function aContext(
  clock: Clock = systemClock,
  shared: Partial<TestContext> = {},
): TestContext {
  const calls: GatewayCall[] = [];
  return {
    clock,
    messageStore: { enqueue: async () => undefined, deleteWaiting: async () => new Set() },
    tokens: new MemoryTokens(clock),
    quota: new MemoryQuota(),
    callbackUrl: 'https://push.example.com/callbacks/vendor/app/secret',
    onCall: (call) => void calls.push(call),
    calls,
    ...shared,
  };
}

/**
 * Token store in memory instead of the table `gateway_token`. Senders with the same store share
 * their tokens.
 */
export class MemoryTokens implements TokenStore {
  readonly kept = new Map<string, StoredToken>();
  readonly #claims = new Map<string, number>();
  readonly #clock: Clock;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async read(credential: string): Promise<StoredToken | null> {
    return this.kept.get(credential) ?? null;
  }

  async claim(credential: string, leaseMs: number): Promise<boolean> {
    if ((this.#claims.get(credential) ?? 0) > this.#clock.now()) return false;
    this.#claims.set(credential, this.#clock.now() + leaseMs);
    return true;
  }

  async keep(credential: string, token: StoredToken): Promise<void> {
    this.kept.set(credential, token);
    this.#claims.delete(credential);
  }

  async release(credential: string): Promise<void> {
    this.#claims.delete(credential);
  }
}

/**
 * Daily quota of message classes in memory instead of the table `gateway_day`. The day never ends.
 */
export class MemoryQuota implements DayQuota {
  readonly reasons = new Map<string, string>();

  async closed(messageClass: string): Promise<string | null> {
    return this.reasons.get(messageClass) ?? null;
  }

  async close(messageClass: string, reason: string): Promise<void> {
    if (!this.reasons.has(messageClass)) this.reasons.set(messageClass, reason);
  }
}
