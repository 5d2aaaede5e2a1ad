import type { Socket } from 'node:net';
import type { InboxMessage } from '../../shared/db/tables/channel-messages.ts';
import type { NewDeviceSession } from '../../shared/db/tables/channel-sessions.ts';
import {
  type Authenticated,
  Closed,
  type ConnectionState,
  type Offer,
  type Step,
  Unauthenticated,
} from './connection-state.ts';
import type { ChannelLimits } from './limits.ts';
import {
  type CloseEvent,
  type CloseReason,
  closeReasons,
  type Frame,
  type Protocol,
} from './protocols/protocol.ts';
import { DeviceSocket, type SocketEvents } from './websocket/device-socket.ts';
import { encodeFrame, encodeMessage, opcodes, pingFrame } from './websocket/frames.ts';

/** Callbacks of a device connection. */
export interface ConnectionOwner {
  openSession(connection: Connection, login: { appId: string; installationId: string }): void;
  ack(connection: Connection, pushIds: number[]): void;
  /** Called if the connection has a backlog and can take messages again. */
  wantsMessages(connection: Connection): void;
  closed(connection: Connection, event: CloseEvent): void;
}

/** Dependencies that all connections share. */
export interface ConnectionDeps {
  limits: ChannelLimits;
  owner: ConnectionOwner;
  monotonicMs(): number;
  /**
   * Number of messages sent since the last tick. To update a metric for each message would be slow.
   */
  sent: { messages: number };
}

const offerOf = (messages: InboxMessage[]): Offer => ({
  messages,
  groupIds: messages.map(({ groupId }) => groupId),
});

/**
 * One socket and its state. Executes the actions of the state machine. Never throws for input of a
 * device.
 */
export class Connection implements SocketEvents {
  /**
   * True while the device's inbox is being read. New messages wait for the read to end, so that
   * messages arrive in order.
   */
  isPulling = false;
  /** Session of the device. It is kept after the connection is closed. */
  session: NewDeviceSession | undefined;
  readonly #deps: ConnectionDeps;
  readonly #protocol: Protocol;
  readonly #socket: DeviceSocket;
  #state: ConnectionState;
  #framesInTick = 0;
  #closeByMs: number | undefined;
  #error: Error | undefined;

  /** Takes over the socket of an accepted upgrade. Call `start` next. */
  constructor(deps: ConnectionDeps, protocol: Protocol, socket: Socket) {
    this.#deps = deps;
    this.#protocol = protocol;
    this.#socket = new DeviceSocket(socket, deps, this);
    this.#state = new Unauthenticated(deps.limits, deps.monotonicMs());
  }

  /** Starts to read. `head` contains the bytes that the device sent after its upgrade request. */
  start(head: Buffer): void {
    this.#socket.start(head);
  }

  get authenticated(): Authenticated | undefined {
    return this.#state.name === 'authenticated' ? this.#state : undefined;
  }

  /**
   * True if the device has logged in but has no session. Either the login is in progress, or the
   * installation does not exist.
   */
  get awaitsSession(): boolean {
    return this.#state.name === 'authenticating' || this.isWaiting;
  }

  get isWaiting(): boolean {
    return this.#state.name === 'waiting';
  }

  /** True if the device reads more slowly than the server writes. */
  get isBackpressured(): boolean {
    return this.#socket.unsentBytes > this.#deps.limits.bufferedBytes;
  }

  /** True if the device reads: only few frames are unsent. */
  get #isReading(): boolean {
    return this.#socket.unsentFrames < this.#deps.limits.unsentFrames;
  }

  onSessionOpened(session: NewDeviceSession): void {
    if (this.#state.name !== 'authenticating' && this.#state.name !== 'waiting') return;
    this.session = session;
    this.#apply(this.#state.onSessionOpened(session, this.#deps.monotonicMs()));
  }

  onLoginRejected(reason: CloseReason): void {
    if (this.#state.name === 'authenticating') this.#apply(this.#state.onLoginRejected(reason));
    else if (this.isWaiting) this.close(reason);
  }

  /**
   * Keeps the connection open without a session, because the installation does not exist or was
   * deleted.
   */
  onInstallationMissing(): void {
    if (this.#state.name !== 'authenticating' && this.#state.name !== 'authenticated') return;
    this.session = undefined;
    this.#apply(this.#state.onInstallationMissing(this.#deps.monotonicMs()));
  }

  /** Closes the connection from the server, in any state. */
  close(reason: CloseReason): void {
    this.#apply({ next: new Closed(), actions: [{ kind: 'close', reason }] });
  }

  /**
   * Asks the device to move to another process. The device gets no more messages here. Its
   * acknowledgements count until the socket closes. Returns false if the protocol has no such
   * command or the connection is closing.
   */
  sendGoAway(): boolean {
    const frame = this.#closeByMs === undefined ? this.#protocol.goAway() : undefined;
    if (!frame) return false;
    this.#state = new Closed();
    this.#send(frame);
    return true;
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /**
   * Sends new messages. If the device cannot take them now, a later read of the inbox sends them.
   */
  offer(offer: Offer): void {
    const state = this.authenticated;
    if (!state) return;
    if (this.isPulling || state.hasBacklog || this.isBackpressured) state.hasBacklog = true;
    else this.#deliver(offer, false);
  }

  /**
   * Sends messages read from the inbox, oldest first. Messages from before the login go into a
   * separate frame.
   */
  deliverFromInbox(messages: InboxMessage[]): void {
    const newest = this.session?.newestPosition ?? 0;
    this.#deliver(offerOf(messages.filter(({ position }) => position <= newest)), true);
    this.#deliver(offerOf(messages.filter(({ position }) => position > newest)), false);
  }

  onAcknowledged(pushId: number): void {
    this.authenticated?.onAcknowledged(pushId);
    this.#requestMessages();
  }

  /** Checks deadlines. Called every `tickEveryMs`. */
  tick(nowMs: number): void {
    this.#framesInTick = 0;
    const { readWithinMs } = this.#deps.limits;
    if (this.#closeByMs !== undefined && nowMs >= this.#closeByMs) this.terminate();
    else if (this.#socket.unsentFrames > 0 && nowMs - this.#socket.lastSentMs >= readWithinMs)
      this.close('readTimeout');
    else this.#apply(this.#state.tick(nowMs));
  }

  /** Sends the messages that the state accepts, in one frame. */
  #deliver({ messages, groupIds }: Offer, isOffline: boolean): void {
    const taken = this.authenticated?.take(messages, groupIds) ?? [];
    if (taken.length > 0) this.#send(this.#protocol.data(taken, isOffline));
    this.#deps.sent.messages += taken.length;
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    if (this.#countFrame()) this.#apply(this.#state.receive(this.#protocol.parse(data, isBinary)));
  }

  onPing(data: Buffer): void {
    if (this.#countFrame() && this.#isReading) this.#socket.send(encodeFrame(opcodes.pong, data));
  }

  onPong(): void {
    this.#onActivity();
  }

  onSent(): void {
    this.#requestMessages();
  }

  onError(error: Error): void {
    this.#error = error;
  }

  onClosing(): void {
    this.#closeByMs ??= this.#deps.monotonicMs() + this.#deps.limits.closeWithinMs;
  }

  onClosed(code: number): void {
    this.#state = new Closed();
    this.#deps.owner.closed(this, { code, error: this.#error });
  }

  /**
   * Counts a frame of the device. If there are too many frames, closes the connection and returns
   * false.
   */
  #countFrame(): boolean {
    this.#onActivity();
    this.#framesInTick += 1;
    const isAllowed = this.#framesInTick <= this.#deps.limits.framesPerTick;
    if (!isAllowed) this.close('tooManyFrames');
    return isAllowed;
  }

  #onActivity(): void {
    if (this.#state.name === 'authenticated' || this.#state.name === 'waiting')
      this.#state.onActivity(this.#deps.monotonicMs());
  }

  #apply(step: Step): void {
    this.#state = step.next;
    const { owner } = this.#deps;
    const protocol = this.#protocol;
    for (const action of step.actions)
      switch (action.kind) {
        case 'openSession':
          owner.openSession(this, action);
          break;
        case 'loggedIn':
          this.#reply(protocol.loggedIn(action.serial));
          break;
        case 'heartbeat':
          this.#reply(protocol.heartbeat(action.serial));
          break;
        case 'rejectRequest':
          this.#reply(protocol.rejection(action.request));
          break;
        case 'ping':
          this.#socket.send(pingFrame);
          break;
        case 'ack':
          owner.ack(this, action.pushIds);
          break;
        case 'close':
          this.#close(action.reason);
          break;
      }
  }

  #close(reason: CloseReason): void {
    if (this.#closeByMs !== undefined) return;
    this.onClosing();
    this.#send(this.#protocol.closeNotice(reason));
    this.#socket.close(closeReasons[reason].code, closeReasons[reason].reason);
  }

  /**
   * Sends a reply unless the client does not read. Unread small replies cost more memory than their
   * size.
   */
  #reply(frame: Frame | undefined): void {
    if (this.#isReading) this.#send(frame);
  }

  #send(frame: Frame | undefined): void {
    if (frame) this.#socket.send(encodeMessage(frame));
  }

  /**
   * Requests messages only if the state can take some. Without room, a read would return nothing,
   * and an acknowledgement that makes room during the read would be missed.
   */
  #requestMessages(): void {
    const state = this.authenticated;
    if (state?.hasBacklog && state.canTakeMessages && !this.isPulling && !this.isBackpressured)
      this.#deps.owner.wantsMessages(this);
  }
}
