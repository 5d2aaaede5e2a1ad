import type { SecureContext } from 'node:tls';
import http2 from 'http2-wrapper';
import { Backoff } from './backoff.ts';
import { type ConnectionOwner, StandardConnection } from './standard-connection.ts';
import { secureContextOf } from './tls.ts';
import type { TransportOptions } from './transport.ts';

/** A full pool gets one more connection this often. */
const growEveryMs = 500;

/** The connections of one transport: how many, which one next, and when another may be made. */
export class ConnectionPool {
  readonly #options: TransportOptions;
  readonly #owner: ConnectionOwner;
  readonly #url: URL;
  readonly #secureContext: SecureContext;
  readonly #agent = new http2.Agent();
  readonly #connections = new Set<StandardConnection>();
  readonly #backoff = new Backoff();
  #openedAtMs = 0;
  #onEmpty: (() => void) | null = null;

  constructor(options: TransportOptions, owner: ConnectionOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#url = new URL(options.baseUrl);
    this.#secureContext = secureContextOf(options);
  }

  get size(): number {
    return this.#connections.size;
  }

  /** The least loaded connection with a free place. */
  pick(): StandardConnection | undefined {
    let best: StandardConnection | undefined;
    for (const connection of this.#connections)
      if (connection.room > 0 && (best === undefined || connection.active < best.active)) best = connection;
    return best;
  }

  /**
   * Makes one more connection when all are full, one at a time and not too often. Gives the milliseconds
   * to wait when there is none and none may be made yet; `isHopeless` says whether waiting is worth it.
   */
  grow(): { waitMs: number; isHopeless: boolean } {
    const nowMs = this.#options.clock.monotonicMs();
    const usable = this.#usable();
    const isFull = usable < 0 || usable >= this.#options.maxConnections;
    const waitMs = this.#backoff.waitMs(nowMs);
    if (!isFull && waitMs === 0 && (usable === 0 || nowMs - this.#openedAtMs >= growEveryMs)) {
      this.#openedAtMs = nowMs;
      this.#connections.add(this.#open());
    }
    return { waitMs: usable === 0 ? waitMs : 0, isHopeless: this.#backoff.isHopeless };
  }

  answered(): void {
    this.#backoff.reset();
  }

  /** Forgets a connection; one that broke before its first answer counts as never made: no tight loop. */
  remove(connection: StandardConnection): { isHopeless: boolean; waitMs: number } {
    const nowMs = this.#options.clock.monotonicMs();
    this.#connections.delete(connection);
    if (!connection.isAnswered && !connection.isRetired) this.#backoff.fail(nowMs);
    if (this.#connections.size === 0) this.#onEmpty?.();
    return { isHopeless: this.#backoff.isHopeless, waitMs: this.#backoff.waitMs(nowMs) };
  }

  drainAll(): void {
    for (const connection of [...this.#connections]) connection.drain();
  }

  sweep(nowMs: number): void {
    for (const connection of [...this.#connections]) connection.sweep(nowMs);
  }

  /** Lets every connection finish for `drainMs`, then ends them. */
  async close(): Promise<void> {
    if (this.#connections.size > 0) {
      const empty = new Promise<void>((resolve) => {
        this.#onEmpty = resolve;
      });
      const end = () => {
        for (const connection of [...this.#connections]) connection.destroy('closed');
      };
      const timer = setTimeout(end, this.#options.timing.drainMs);
      this.drainAll();
      await empty;
      clearTimeout(timer);
    }
    this.#agent.destroy();
  }

  /** Connections that take requests; -1 while one is being made or the peer has not accepted us yet. */
  #usable(): number {
    let usable = 0;
    for (const { phase, isAccepted } of this.#connections) {
      if (phase === 'connecting') return -1;
      if (phase !== 'open') continue;
      if (!isAccepted && this.#options.firstStreams !== undefined) return -1;
      usable += 1;
    }
    return usable;
  }

  #open(): StandardConnection {
    const { clock, firstStreams, timing } = this.#options;
    return new StandardConnection(
      {
        url: this.#url,
        secureContext: this.#secureContext,
        agent: this.#agent,
        firstStreams: firstStreams ?? Number.POSITIVE_INFINITY,
        timing,
        monotonicMs: () => clock.monotonicMs(),
      },
      this.#owner,
    );
  }
}
