import type { Server } from 'node:tls';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { CertificateAuthority } from './certificates.ts';
import { Ledger } from './ledger.ts';
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
