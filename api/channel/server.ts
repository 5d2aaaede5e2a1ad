import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isDoneWithin } from '../../shared/clock.ts';
import type { Listener } from '../../shared/db/listener.ts';
import { inboxTopic } from '../../shared/db/tables/channel-enqueue.ts';
import { sessionTopic } from '../../shared/db/tables/channel-sessions.ts';
import { networkOf } from '../../shared/domain/addresses.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { Connection, type ConnectionDeps } from './connection.ts';
import { Delivery } from './delivery.ts';
import { type ChannelLimits, channelLimits } from './limits.ts';
import { NewMessages } from './new-messages.ts';
import { Presence, type PresenceDeps } from './presence.ts';
import { protobufProtocols } from './protocols/protobuf.ts';
import { type CloseEvent, jsonProtocol, type Protocol } from './protocols/protocol.ts';
import { acceptance, offeredProtocols } from './websocket/frames.ts';

/** Network address that connections come from, with its counts. */
interface Origin {
  /** IPv4 address, or /64 prefix of an IPv6 address. */
  readonly address: string;
  connections: number;
  /** Number of upgrades requested in this minute, including refused upgrades. */
  upgrades: number;
}

type AdmissionLimits = Pick<
  ChannelLimits,
  'connections' | 'connectionsPerAddress' | 'upgradesPerAddress'
>;

const windowMs = 60_000;
const retryAfterSeconds = 10;

/**
 * Admission control. Limits the connections and upgrades of this process, in total and by remote
 * address.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #origins = new Map<string, Origin>();
  #connections = 0;
  #refused = 0;
  #windowEndsAtMs = 0;

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /**
   * Counts an upgrade and returns its origin. If a limit is reached, throws error 429 or 503 with a
   * retry time.
   */
  admit(address: string, nowMs: number): Origin {
    const origin = this.#originOf(networkOf(address));
    origin.upgrades += 1;
    const { connections, connectionsPerAddress, upgradesPerAddress } = this.#limits;
    const secondsLeft = Math.max(1, Math.ceil((this.#windowEndsAtMs - nowMs) / 1000));
    if (origin.upgrades > upgradesPerAddress) throw this.#refuse('tooManyRequests', secondsLeft);
    if (origin.connections >= connectionsPerAddress)
      throw this.#refuse('tooManyRequests', retryAfterSeconds);
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

  /**
   * Starts the next minute when it is due. Returns the number of upgrades refused in the previous
   * minute.
   */
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
    const existing = this.#origins.get(address);
    if (existing) return existing;
    const origin = { address, connections: 0, upgrades: 0 };
    this.#origins.set(address, origin);
    return origin;
  }
}

interface ChannelDeps extends Omit<PresenceDeps, 'limits'> {
  listener: Listener;
  /**
   * Returns the remote IP address of a request, determined as in the HTTP API (`TRUSTED_PROXIES`).
   */
  ipAddressOf(request: IncomingMessage): string;
}

/** Upgrade request that was admitted. */
interface Upgrade {
  socket: Socket;
  /** HTTP response to the request. */
  answer: string;
  /** Bytes that the device sent after the request. */
  head: Buffer;
  protocol: Protocol;
  origin: Origin;
}

function destroyOnError(this: Duplex): void {
  this.destroy();
}

/**
 * The device channel of one api process. Call `start` once, and `close` before the HTTP server
 * closes.
 */
export class Channel {
  readonly #deps: ChannelDeps;
  readonly #limits: ChannelLimits;
  readonly #presence: Presence;
  readonly #delivery: Delivery;
  readonly #newMessages: NewMessages;
  readonly #ofConnections: ConnectionDeps;
  readonly #admission: Admission;
  readonly #connections = new Map<Connection, Origin>();
  readonly #closers: (() => void)[] = [];
  readonly #runningTasks = new Set<string>();
  #isOpen = false;
  #hasMissed = false;
  #onEmpty = () => {};

  /** Handles `upgrade` requests of the server. Replies with 503 until `start` has resolved. */
  constructor(server: Server, deps: ChannelDeps, limits: ChannelLimits = channelLimits) {
    this.#deps = deps;
    this.#limits = limits;
    this.#admission = new Admission(limits);
    this.#presence = new Presence({ ...deps, limits });
    this.#delivery = new Delivery({ ...deps, limits, presence: this.#presence });
    this.#newMessages = new NewMessages({
      ...deps,
      limits,
      presence: this.#presence,
      onMissed: () => this.#onMissed(),
    });
    this.#ofConnections = {
      limits,
      monotonicMs: () => deps.clock.monotonicMs(),
      sent: { messages: 0 },
      owner: {
        openSession: (connection, login) => void this.#openSession(connection, login),
        ack: (connection, pushIds) => this.#delivery.ack(connection, pushIds),
        wantsMessages: (connection) => void this.#delivery.pull(connection),
        closed: (connection, event) => this.#onClosed(connection, event),
      },
    };
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Registers this process as a node and starts listening for new messages. */
  async start(): Promise<void> {
    const { listener } = this.#deps;
    await this.#presence.heartbeat();
    this.#closers.push(
      await listener.listen(sessionTopic, (payload) => this.#presence.onNotification(payload)),
      await listener.listen(inboxTopic, (payload) => {
        if (payload === '') this.#onMissed();
        else this.#newMessages.onNotification(payload);
      }),
    );
    this.#every(this.#limits.tickEveryMs, () => this.#tick());
    this.#every(this.#limits.heartbeatEveryMs, () =>
      this.#inBackground('heartbeat', () => this.#heartbeat()),
    );
    this.#every(this.#limits.sweepEveryMs, () => this.#inBackground('sweep', () => this.#sweep()));
    this.#isOpen = true;
  }

  /**
   * Closes all connections, stores their acknowledgements and removes this node. If the protocol
   * has a goaway command, devices first get time to move. Other devices, and devices that do not
   * move in time, are closed with 1001.
   */
  async close(): Promise<void> {
    this.#isOpen = false;
    for (const closer of this.#closers) closer();
    let isMoving = false;
    for (const connection of this.#connections.keys())
      if (connection.sendGoAway()) isMoving = true;
      else connection.close('goingAway');
    if (isMoving) await this.#untilEmpty(this.#limits.goAwayWithinMs);
    for (const connection of this.#connections.keys()) connection.close('goingAway');
    await this.#untilEmpty(this.#limits.closeWithinMs);
    for (const connection of this.#connections.keys()) connection.terminate();
    await this.#delivery.close();
    await this.#presence.close();
  }

  #every(ms: number, run: () => unknown): void {
    const timer = setInterval(run, ms);
    this.#closers.push(() => clearInterval(timer));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', destroyOnError);
    try {
      const { protocol, origin } = this.#admit(request);
      const answer = acceptance(request, protocol.name);
      // The client may have disconnected already. Sockets of an HTTP server are TCP sockets.
      if (!(socket instanceof Socket) || !socket.readable || !socket.writable) socket.destroy();
      else this.#accept({ socket, answer, head, protocol, origin });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(socket, error);
    }
  }

  /**
   * Returns the protocol and the origin of a request. Throws a `Refusal` if the request is not
   * admitted.
   */
  #admit(request: IncomingMessage): { protocol: Protocol; origin: Origin } {
    const { ipAddressOf, clock } = this.#deps;
    if (!this.#isOpen) throw new Refusal('unavailable', { retryAfterSeconds: 1 });
    const origin = this.#admission.admit(ipAddressOf(request), clock.monotonicMs());
    const protocol = chooseProtocol(offeredProtocols(request));
    if (!protocol)
      throw new Refusal('invalidParameter', { text: 'None of the sub-protocols is known.' });
    return { protocol, origin };
  }

  #accept({ socket, answer, head, protocol, origin }: Upgrade): void {
    this.#admission.onOpened(origin);
    socket.write(answer);
    const connection = new Connection(this.#ofConnections, protocol, socket);
    this.#connections.set(connection, origin);
    connection.start(head);
    socket.off('error', destroyOnError);
  }

  async #openSession(
    connection: Connection,
    login: { appId: string; installationId: string },
  ): Promise<void> {
    if (await this.#presence.logIn(connection, login)) await this.#delivery.onLogin(connection);
  }

  #onClosed(connection: Connection, { code, error }: CloseEvent): void {
    this.#deps.log.debug(
      { code, error: error?.message, appId: connection.session?.appId },
      'device disconnected',
    );
    const origin = this.#connections.get(connection);
    if (origin) this.#admission.onClosed(origin);
    this.#connections.delete(connection);
    this.#presence.remove(connection);
    if (this.#connections.size === 0) this.#onEmpty();
  }

  #tick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const connection of this.#connections.keys()) connection.tick(nowMs);
    void this.#inBackground('waiting', () => this.#openWaiting());
    const { sent } = this.#ofConnections;
    this.#deps.metrics.channelMessages.inc({ event: 'sent' }, sent.messages);
    sent.messages = 0;
    const refused = this.#admission.tick(nowMs);
    if (refused > 0) this.#deps.log.warn({ refused }, 'connections refused: limit reached');
  }

  /** Opens sessions of devices whose installation now exists and sends their pending messages. */
  async #openWaiting(): Promise<void> {
    const opened = await this.#presence.openWaiting();
    await Promise.all(opened.map((connection) => this.#delivery.onLogin(connection)));
  }

  async #sweep(): Promise<void> {
    await this.#presence.releaseDeleted();
    await this.#delivery.pullAll(this.#limits.moveAfterMs);
  }

  /** Records a heartbeat. Repeats a recovery that failed. */
  async #heartbeat(): Promise<void> {
    if ((await this.#presence.heartbeat()) || this.#hasMissed) this.#onMissed();
  }

  /**
   * Recovers from missed notifications, or from the removal of this node. Repeats this if more
   * notifications are missed during the recovery.
   */
  #onMissed(): void {
    this.#hasMissed = true;
    void this.#inBackground('recover', async () => {
      while (this.#hasMissed) {
        this.#hasMissed = false;
        await this.#recover().catch((error: unknown) => {
          this.#hasMissed = true;
          throw error;
        });
      }
    });
  }

  /** Reads sessions and pending messages again after missed notifications. */
  async #recover(): Promise<void> {
    await this.#presence.reconcile();
    await this.#delivery.pullAll(0);
  }

  /**
   * Runs a periodic task and logs its failure. Skips the run if the previous run is still in
   * progress.
   */
  async #inBackground(task: string, run: () => Promise<void>): Promise<void> {
    if (this.#runningTasks.has(task)) return;
    this.#runningTasks.add(task);
    try {
      await run();
    } catch (error) {
      this.#deps.log.warn({ err: error, task }, 'periodic task of the channel failed');
    } finally {
      this.#runningTasks.delete(task);
    }
  }

  async #untilEmpty(withinMs: number): Promise<void> {
    if (this.#connections.size === 0) return;
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    await isDoneWithin(empty, withinMs);
  }
}

/**
 * Replies to an upgrade request with an error of the HTTP API (protocol/errors.md#error-replies)
 * and closes the socket.
 */
function refuse(socket: Duplex, { status, code, message, retryAfterSeconds }: Refusal): void {
  const body = JSON.stringify({ code, error: message });
  const headers = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(retryAfterSeconds === undefined ? [] : [`Retry-After: ${retryAfterSeconds}`]),
  ];
  // Destroy the socket, because the client may keep its half of the connection open.
  socket.once('finish', () => socket.destroy());
  socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`);
}

const byName = new Map(
  [jsonProtocol, ...protobufProtocols].map((protocol) => [protocol.name, protocol]),
);

/** Returns the first offered protocol that the server supports. The empty name means JSON. */
export function chooseProtocol(offered: Iterable<string>): Protocol | undefined {
  for (const name of offered) {
    const protocol = byName.get(name);
    if (protocol) return protocol;
  }
  return undefined;
}
