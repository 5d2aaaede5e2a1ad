import type { Server } from 'node:tls';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { CertificateAuthority } from './certificates.ts';
import { type Identity, type Listening, type ListenOptions, listen } from './listen.ts';
import { type Misbehaviour, Misbehaviours } from './misbehaviour.ts';
import { createUncheckedServer, type Success } from './unchecked.ts';

export interface SandboxOptions extends ListenOptions {
  /**
   * With `none`, each request succeeds at the lowest cost, and the gateway only counts it
   * (docs/develop/sandbox.md#without-checks). `all` by default.
   */
  checks?: 'all' | 'none';
  /**
   * Maximum number of open streams per HTTP/2 connection; by default 1000 for APNs and 100 for
   * others.
   */
  maxStreams?: number;
  /** Number of recent requests that are stored with their bodies; 1000 by default. */
  keptRequests?: number;
  clock?: Clock;
}

/**
 * Gateway on loopback with TLS: its address, the record of requests, and misbehaviour. A protocol
 * provides server and rules. `Seen` is the recorded form of a request.
 */
export abstract class LoopbackGateway<Seen> {
  /** Number of accepted connections; 0 without checks. */
  connections = 0;
  protected readonly ledger: Ledger<Seen>;
  protected readonly misbehaviours = new Misbehaviours();
  protected readonly clock: Clock;
  readonly #options: SandboxOptions;
  #listening: Listening | undefined;

  protected constructor(options: SandboxOptions) {
    this.#options = options;
    this.ledger = new Ledger(options.keptRequests);
    this.clock = options.clock ?? systemClock;
  }

  /** Creates the server with checks. */
  protected abstract createServer(identity: Identity): Server;

  /** Replies of a gateway without checks. */
  protected abstract readonly successes: readonly Success[];

  protected abstract readonly maxStreams: number;

  /** Without checks: called with the path of each HTTP/2 request. */
  protected readonly onPath?: ((path: string) => void) | undefined;

  /** Starts the gateway. Resolves when it listens. */
  async open(): Promise<this> {
    this.#listening = await listen(this.#options, (identity) =>
      this.#isChecking ? this.createServer(identity) : this.#createUncheckedServer(identity),
    );
    return this;
  }

  /** Base URL, for a profile's `endpoint` and `authEndpoint`. */
  get url(): string {
    return this.#opened.url;
  }

  /** Certificate to trust in PEM, for a profile's `ca`. */
  get ca(): string {
    return this.authority.certificate;
  }

  get authority(): CertificateAuthority {
    return this.#opened.authority;
  }

  /**
   * Number of processed requests, whatever the response. Token calls are counted in `tokenCalls`.
   */
  get total(): number {
    return this.ledger.total;
  }

  get tokenCalls(): number {
    return this.ledger.tokenCalls;
  }

  /** Number of accepted messages: one per device and request. */
  get accepted(): number {
    return this.ledger.accepted;
  }

  /** Number of different devices in all processed requests. */
  get distinct(): number {
    return this.ledger.distinct;
  }

  /** The last requests, oldest first. */
  get requests(): Seen[] {
    return this.ledger.requests;
  }

  /** Descriptions of requests that a client must never send. */
  get violations(): string[] {
    return this.ledger.violations;
  }

  /** Returns the number of processed requests that contained a device, whatever the response. */
  seen(token: string): number {
    return this.ledger.seen(token);
  }

  /** Returns the number of accepted messages to a device. */
  delivered(token: string): number {
    return this.ledger.delivered(token);
  }

  /** Adds a misbehaviour. Throws if the gateway has no checks. */
  misbehave(what: Misbehaviour): void {
    if (!this.#isChecking) throw new Error('a gateway without checks cannot misbehave');
    this.misbehaviours.add(what);
  }

  /** Ends all misbehaviours. */
  behave(): void {
    this.misbehaviours.clear();
  }

  /** Resolves when `total` requests were processed. */
  waitFor(total: number): Promise<void> {
    return this.ledger.until(() => this.ledger.total >= total);
  }

  /** Resolves when messages to `devices` devices were accepted. */
  waitForAccepted(devices: number): Promise<void> {
    return this.ledger.until(() => this.ledger.accepted >= devices);
  }

  /** Clears the recorded requests. Settings stay. */
  forget(): void {
    this.ledger.forget();
  }

  async close(): Promise<void> {
    await this.#opened.close();
  }

  get #isChecking(): boolean {
    return this.#options.checks !== 'none';
  }

  get #opened(): Listening {
    if (!this.#listening) throw new Error('the gateway does not listen');
    return this.#listening;
  }

  #createUncheckedServer(identity: Identity): Server {
    const { ledger, maxStreams, onPath, successes } = this;
    return createUncheckedServer(identity, {
      maxStreams,
      successes,
      ...(onPath === undefined ? {} : { onPath }),
      onRequest: () => ledger.count(0),
    });
  }
}

/** What the ledger counts for a processed request. */
interface Counted {
  /** Devices in the request. */
  tokens: readonly string[];
  /** Devices whose message was accepted. */
  accepted: readonly string[];
  /** Reason, if the request was refused. */
  reason?: string;
}

/**
 * Record of the processed requests of a gateway: counters, also by device, and the last requests
 * with their bodies. `Seen` is the recorded form of a request.
 */
class Ledger<Seen> {
  /** Number of processed requests without token calls, whatever the response. */
  total = 0;
  /** Number of accepted messages: one per device and request. */
  accepted = 0;
  tokenCalls = 0;
  readonly violations: string[] = [];
  readonly #seen = new Map<string, number>();
  readonly #delivered = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  readonly #ring: Seen[] = [];
  readonly #capacity: number;
  #waiting: { isDone(): boolean; resolve(): void }[] = [];

  /** `capacity` is the number of recent requests that are stored with their bodies. */
  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  /** Records a request. */
  add(request: Seen, counted: Counted): void {
    for (const token of counted.tokens) increment(this.#seen, token);
    for (const token of counted.accepted) increment(this.#delivered, token);
    this.#ring[this.total % this.#capacity] = request;
    this.count(counted.accepted.length, counted.reason);
  }

  /**
   * Counts a request only in the totals. For very many requests, whose full record would need too
   * much memory.
   */
  count(accepted: number, reason?: string): void {
    this.total += 1;
    this.accepted += accepted;
    if (reason !== undefined) increment(this.#refusals, reason);
    if (this.#waiting.length > 0) this.#wake();
  }

  seen(token: string): number {
    return this.#seen.get(token) ?? 0;
  }

  delivered(token: string): number {
    return this.#delivered.get(token) ?? 0;
  }

  refusals(reason: string): number {
    return this.#refusals.get(reason) ?? 0;
  }

  get distinct(): number {
    return this.#seen.size;
  }

  /** The last requests, oldest first. */
  get requests(): Seen[] {
    const start = this.total > this.#capacity ? this.total % this.#capacity : 0;
    return [...this.#ring.slice(start), ...this.#ring.slice(0, start)];
  }

  until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push({ isDone, resolve });
    });
  }

  forget(): void {
    this.total = 0;
    this.accepted = 0;
    this.tokenCalls = 0;
    this.violations.length = 0;
    this.#seen.clear();
    this.#delivered.clear();
    this.#refusals.clear();
    this.#ring.length = 0;
  }

  #wake(): void {
    const done = this.#waiting.filter(({ isDone }) => isDone());
    this.#waiting = this.#waiting.filter((waiter) => !done.includes(waiter));
    for (const { resolve } of done) resolve();
  }
}

const increment = (counts: Map<string, number>, key: string): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);
