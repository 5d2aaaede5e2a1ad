import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { sleep } from '../../shared/clock.ts';
import type { Listener } from '../../shared/db/listener.ts';
import { inboxTopic } from '../../shared/db/tables/channel/messages.ts';
import { sessionTopic } from '../../shared/db/tables/channel/sessions.ts';
import { channelPath } from '../../shared/domain/channel.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { Admission, type Origin } from './admission.ts';
import { type CloseEvent, Connection, type ConnectionOwner } from './connection.ts';
import { Delivery } from './delivery.ts';
import { type ChannelLimits, channelLimits } from './limits.ts';
import { Presence, type PresenceDeps } from './presence.ts';
import { chooseProtocol } from './protocols/all.ts';
import type { Protocol } from './protocols/protocol.ts';

export interface ChannelDeps extends Omit<PresenceDeps, 'limits'> {
  listener: Listener;
  /** Who asks, as the HTTP side sees it (`TRUSTED_PROXIES`). */
  addressOf(request: IncomingMessage): string;
}

/** What a client offers to speak; a header that is missing offers the language without a name. */
function offeredBy(request: IncomingMessage): string[] {
  return (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
}

/** The device channel of one api process. `start` it once, `close` it before the HTTP server. */
export class Channel {
  readonly #deps: ChannelDeps;
  readonly #limits: ChannelLimits;
  readonly #presence: Presence;
  readonly #delivery: Delivery;
  readonly #owner: ConnectionOwner;
  readonly #sockets: WebSocketServer;
  readonly #admission: Admission;
  readonly #connections = new Map<Connection, Origin>();
  readonly #endings: (() => void)[] = [];
  readonly #duties = new Set<string>();
  #isOpen = false;
  #onEmpty = () => {};

  /** Takes over the server's `upgrade` requests; until `start` is done they are answered 503. */
  constructor(server: Server, deps: ChannelDeps, limits: ChannelLimits = channelLimits) {
    this.#deps = deps;
    this.#limits = limits;
    this.#admission = new Admission(limits);
    this.#presence = new Presence({ ...deps, limits });
    this.#delivery = new Delivery({ ...deps, limits, presence: this.#presence });
    this.#owner = {
      openSession: (connection, login) => void this.#seat(connection, login),
      ack: (session, pushIds) => this.#delivery.ack(session, pushIds),
      wantsMessages: (connection) => void this.#delivery.pull(connection),
      closed: (connection, reason) => this.#closed(connection, reason),
    };
    this.#sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // Costs memory for every connection and gains little on messages of at most 4 kB.
      perMessageDeflate: false,
      maxPayload: limits.frameBytes,
      handleProtocols: (offered) => chooseProtocol(offered)?.name ?? false,
    });
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
  }

  /** Makes this process known to the others and begins to listen for letters. */
  async start(): Promise<void> {
    const { listener } = this.#deps;
    await this.#presence.beat();
    this.#endings.push(
      await listener.listen(sessionTopic, (payload) => this.#presence.onNotice(payload)),
      await listener.listen(inboxTopic, (payload) => {
        if (payload === '') void this.#inBackground('recover', () => this.#recover());
        else this.#delivery.onNotice(payload);
      }),
    );
    this.#every(this.#limits.tickEveryMs, () => this.#tick());
    this.#every(this.#limits.heartbeatEveryMs, () => this.#inBackground('beat', () => this.#beat()));
    this.#every(this.#limits.sweepEveryMs, () =>
      this.#inBackground('look after', () => this.#delivery.pullAll()),
    );
    this.#isOpen = true;
  }

  /**
   * Lets every device go, stores what they acknowledged, and leaves the list of nodes. Those that can be asked to
   * move are asked and given a moment; the others, and those that stay, are closed with 1001.
   */
  async close(): Promise<void> {
    this.#isOpen = false;
    for (const end of this.#endings) end();
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
    this.#endings.push(() => clearInterval(timer));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    try {
      const { protocol, origin } = this.#admit(request);
      this.#sockets.handleUpgrade(request, socket, head, (webSocket) =>
        this.#accept(webSocket, protocol, origin),
      );
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(socket, error);
    }
  }

  /** The language of a request, and where it comes from. Throws the refusal of one that is not let in. */
  #admit(request: IncomingMessage): { protocol: Protocol; origin: Origin } {
    const { addressOf, clock } = this.#deps;
    if (request.url?.split('?')[0] !== channelPath) throw new Refusal('notFound');
    if (!this.#isOpen) throw new Refusal('unavailable', { retryAfterSeconds: 1 });
    const origin = this.#admission.ask(addressOf(request), clock.monotonicMs());
    const protocol = chooseProtocol(offeredBy(request));
    if (!protocol) throw new Refusal('invalidParameter', { text: 'None of the sub-protocols is known.' });
    return { protocol, origin };
  }

  #accept(socket: WebSocket, protocol: Protocol, origin: Origin): void {
    const monotonicMs = () => this.#deps.clock.monotonicMs();
    this.#admission.entered(origin);
    this.#connections.set(
      new Connection({ socket, protocol, limits: this.#limits, owner: this.#owner, monotonicMs }),
      origin,
    );
  }

  async #seat(connection: Connection, login: { appId: string; installationId: string }): Promise<void> {
    if (await this.#presence.join(connection, login)) await this.#delivery.welcome(connection);
  }

  #closed(connection: Connection, { code, error }: CloseEvent): void {
    this.#deps.log.debug(
      { code, problem: error?.message, appId: connection.session?.appId },
      'device disconnected',
    );
    const origin = this.#connections.get(connection);
    if (origin) this.#admission.left(origin);
    this.#connections.delete(connection);
    this.#presence.leave(connection);
    if (this.#connections.size === 0) this.#onEmpty();
  }

  #tick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const connection of this.#connections.keys()) connection.tick(nowMs);
    const refused = this.#admission.tick(nowMs);
    if (refused > 0) this.#deps.log.warn({ refused }, 'connections were refused: too many');
  }

  async #beat(): Promise<void> {
    if (await this.#presence.beat()) await this.#recover();
  }

  /** Notices were missed: who is seated and what was deposited meanwhile is read again. */
  async #recover(): Promise<void> {
    await this.#presence.reconcile();
    await this.#delivery.pullAll();
  }

  /** Runs a duty beside the traffic, not twice at a time; its failure is logged, and its next turn comes. */
  async #inBackground(duty: string, run: () => Promise<void>): Promise<void> {
    if (this.#duties.has(duty)) return;
    this.#duties.add(duty);
    try {
      await run();
    } catch (error) {
      this.#deps.log.warn({ err: error, duty }, 'the channel could not reach the database');
    } finally {
      this.#duties.delete(duty);
    }
  }

  async #untilEmpty(withinMs: number): Promise<void> {
    if (this.#connections.size === 0) return;
    const patience = new AbortController();
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    await Promise.race([empty, sleep(withinMs, patience.signal)]);
    patience.abort();
  }
}

/** Answers an upgrade as a call would be answered (protocol/errors.md#error-replies), and ends the connection. */
function refuse(socket: Duplex, { status, code, message, retryAfterSeconds }: Refusal): void {
  const body = JSON.stringify({ code, error: message });
  const headers = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...(retryAfterSeconds === undefined ? [] : [`Retry-After: ${retryAfterSeconds}`]),
  ];
  // A client that keeps its half open must not keep ours.
  socket.once('finish', () => socket.destroy());
  socket.end(`${headers.join('\r\n')}\r\n\r\n${body}`);
}
