import type { WebSocket } from 'ws';
import type { DeviceMessage, InboxMessage } from '../../shared/db/tables/channel/inbox.ts';
import type { DeviceSession, NewDeviceSession } from '../../shared/db/tables/channel/sessions.ts';
import { type CloseReason, closeReasons } from './close-reason.ts';
import {
  type Authenticated,
  Closed,
  type ConnectionState,
  type Step,
  Unauthenticated,
} from './connection-state.ts';
import type { ChannelLimits } from './limits.ts';
import type { Frame, Protocol } from './protocols/protocol.ts';

export interface CloseEvent {
  code: number;
  /** What the WebSocket library complained of. */
  error: Error | undefined;
}

/** What a connection asks of the rest of the channel. */
export interface ConnectionOwner {
  openSession(connection: Connection, login: { appId: string; installationId: string }): void;
  ack(session: DeviceSession, pushIds: number[]): void;
  /** It is behind, and can take letters again. */
  wantsMessages(connection: Connection): void;
  closed(connection: Connection, why: CloseEvent): void;
}

export interface ConnectionDeps {
  socket: WebSocket;
  protocol: Protocol;
  limits: ChannelLimits;
  owner: ConnectionOwner;
  monotonicMs(): number;
}

/** One socket and its session: carries out what the session says, and never throws for what a device does. */
export class Connection {
  /** A read of its letters is under way; new ones wait for it, so that they arrive in order. */
  isPulling = false;
  /** Where it was seated; kept after it is gone. */
  session: NewDeviceSession | undefined;
  readonly #deps: ConnectionDeps;
  #state: ConnectionState;
  #frames = 0;
  /** Frames that the device's network did not take yet, and when it last took one. */
  #unsent = 0;
  #tookAtMs = 0;
  #leavesByMs: number | undefined;
  #error: Error | undefined;

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#state = new Unauthenticated(deps.limits, deps.monotonicMs());
    const { socket } = deps;
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#hear(data, isBinary));
    socket.on('ping', () => this.#count());
    socket.on('pong', () => this.#heard());
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', (code) => {
      this.#state = new Closed();
      deps.owner.closed(this, { code, error: this.#error });
    });
    // Every frame is one buffer: the default would be an array of fragments or an ArrayBuffer by setting.
    socket.binaryType = 'nodebuffer';
  }

  get authenticated(): Authenticated | undefined {
    return this.#state.state === 'authenticated' ? this.#state : undefined;
  }

  /** Waits for the answer to its login. */
  get isAuthenticating(): boolean {
    return this.#state.state === 'authenticating';
  }

  /** The device does not read as fast as it is written to. */
  get isBackpressured(): boolean {
    return this.#deps.socket.bufferedAmount > this.#deps.limits.bufferedBytes;
  }

  onSessionOpened(session: NewDeviceSession): void {
    if (this.#state.state !== 'authenticating') return;
    this.session = session;
    this.#apply(this.#state.onSessionOpened(session, this.#deps.monotonicMs()));
  }

  onLoginRejected(reason: CloseReason): void {
    if (this.#state.state === 'authenticating') this.#apply(this.#state.onLoginRejected(reason));
  }

  /** Closes it from our side, whatever its state. */
  close(reason: CloseReason): void {
    this.#apply({ next: new Closed(), actions: [{ kind: 'close', reason }] });
  }

  /**
   * Asks the device to move to another process: it gets no further letters here, and what it acknowledges until
   * it goes still counts. False where its language has no word for that, and when it is being closed.
   */
  sendGoAway(): boolean {
    const frame = this.#leavesByMs === undefined ? this.#deps.protocol.goAway() : undefined;
    if (!frame) return false;
    this.#state = new Closed();
    this.#send(frame);
    return true;
  }

  terminate(): void {
    this.#deps.socket.terminate();
  }

  /** A new letter, told by a notice. What cannot be sent now is read from the database later. */
  offer(letter: DeviceMessage): void {
    const authenticated = this.authenticated;
    if (!authenticated) return;
    if (this.isPulling || authenticated.hasBacklog || this.isBackpressured) authenticated.hasBacklog = true;
    else this.#deliver([letter], false);
  }

  /** Letters read from the database, oldest first. Those that waited before its login are sent apart. */
  deliverWaiting(letters: InboxMessage[]): void {
    const newest = this.session?.newestInboxId ?? 0;
    this.#deliver(
      letters.filter(({ inboxId }) => inboxId <= newest),
      true,
    );
    this.#deliver(
      letters.filter(({ inboxId }) => inboxId > newest),
      false,
    );
  }

  onAcknowledged(pushId: number): void {
    this.authenticated?.onAcknowledged(pushId);
    this.#askForLetters();
  }

  /** Looks at deadlines; called every `tickEveryMs`. */
  tick(nowMs: number): void {
    this.#frames = 0;
    const { readWithinMs } = this.#deps.limits;
    if (this.#leavesByMs !== undefined && nowMs >= this.#leavesByMs) this.terminate();
    else if (this.#unsent > 0 && nowMs - this.#tookAtMs >= readWithinMs) this.close('readTimeout');
    else this.#apply(this.#state.tick(nowMs));
  }

  /** Sends what the session takes of `letters`, in one frame. */
  #deliver(letters: DeviceMessage[], isOffline: boolean): void {
    const taken = this.authenticated?.take(letters) ?? [];
    if (taken.length > 0) this.#send(this.#deps.protocol.data(taken, isOffline));
  }

  #hear(data: Buffer, isBinary: boolean): void {
    if (this.#count()) this.#apply(this.#state.receive(this.#deps.protocol.parse(data, isBinary)));
  }

  /** False when it is one frame too many. */
  #count(): boolean {
    this.#heard();
    this.#frames += 1;
    const isFine = this.#frames <= this.#deps.limits.framesPerTick;
    if (!isFine) this.close('tooManyFrames');
    return isFine;
  }

  #heard(): void {
    this.authenticated?.onActivity(this.#deps.monotonicMs());
  }

  #apply(step: Step): void {
    this.#state = step.next;
    const { protocol, owner, socket } = this.#deps;
    for (const action of step.actions)
      switch (action.kind) {
        case 'openSession':
          owner.openSession(this, action);
          break;
        case 'loggedIn':
          this.#answer(protocol.loggedIn(action.serial));
          break;
        case 'heartbeat':
          this.#answer(protocol.heartbeat(action.serial));
          break;
        case 'rejectRequest':
          this.#answer(protocol.rejection(action.request));
          break;
        case 'ping':
          if (socket.readyState === socket.OPEN) socket.ping();
          break;
        case 'ack':
          if (this.session) owner.ack(this.session, action.pushIds);
          break;
        case 'close':
          this.#close(action.reason);
          break;
      }
  }

  #close(reason: CloseReason): void {
    if (this.#leavesByMs !== undefined) return;
    this.#leavesByMs = this.#deps.monotonicMs() + this.#deps.limits.closeWithinMs;
    this.#send(this.#deps.protocol.closeNotice(reason));
    this.#deps.socket.close(closeReasons[reason].code, closeReasons[reason].reason);
  }

  /** Who asks and does not read is not answered: many small answers cost more memory than their bytes. */
  #answer(frame: Frame | undefined): void {
    if (this.#unsent < this.#deps.limits.unsentFrames) this.#send(frame);
  }

  #send(frame: Frame | undefined): void {
    const { socket, monotonicMs } = this.#deps;
    if (!frame || socket.readyState !== socket.OPEN) return;
    if (this.#unsent === 0) this.#tookAtMs = monotonicMs();
    this.#unsent += 1;
    socket.send(frame.data, { binary: frame.isBinary }, () => this.#sent());
  }

  #sent(): void {
    this.#unsent -= 1;
    this.#tookAtMs = this.#deps.monotonicMs();
    this.#askForLetters();
  }

  /** Without room it does not ask: while that came to nothing, the acknowledgement that makes room would be missed. */
  #askForLetters(): void {
    const { authenticated } = this;
    if (
      authenticated?.hasBacklog &&
      authenticated.canTakeMessages &&
      !this.isPulling &&
      !this.isBackpressured
    )
      this.#deps.owner.wantsMessages(this);
  }
}
