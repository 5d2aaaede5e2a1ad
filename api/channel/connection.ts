import type { WebSocket } from 'ws';
import type { Letter, WaitingLetter } from '../../shared/db/tables/channel/channel-letters.ts';
import type { NewSeat, SessionSeat } from '../../shared/db/tables/channel/channel-presence.ts';
import { type Farewell, farewells } from './farewell.ts';
import type { ChannelLimits } from './limits.ts';
import type { Frame, Protocol } from './protocols/protocol.ts';
import { Gone, type Member, type Session, type Step, Stranger } from './session.ts';

export interface ClosingReason {
  code: number;
  /** What the WebSocket library complained of. */
  error: Error | undefined;
}

/** What a connection asks of the rest of the channel. */
export interface ConnectionOwner {
  seat(connection: Connection, login: { appId: string; installationId: string }): void;
  ack(seat: SessionSeat, pushIds: number[]): void;
  /** It is behind, and can take letters again. */
  wantsLetters(connection: Connection): void;
  closed(connection: Connection, why: ClosingReason): void;
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
  seat: NewSeat | undefined;
  readonly #deps: ConnectionDeps;
  #session: Session;
  #frames = 0;
  /** Frames that the device's network did not take yet, and when it last took one. */
  #unsent = 0;
  #tookAtMs = 0;
  #leavesByMs: number | undefined;
  #error: Error | undefined;

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#session = new Stranger(deps.limits, deps.monotonicMs());
    const { socket } = deps;
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#hear(data, isBinary));
    socket.on('ping', () => this.#count());
    socket.on('pong', () => this.#heard());
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', (code) => {
      this.#session = new Gone();
      deps.owner.closed(this, { code, error: this.#error });
    });
    // Every frame is one buffer: the default would be an array of fragments or an ArrayBuffer by setting.
    socket.binaryType = 'nodebuffer';
  }

  get member(): Member | undefined {
    return this.#session.state === 'member' ? this.#session : undefined;
  }

  /** Waits for the answer to its login. */
  get isApplicant(): boolean {
    return this.#session.state === 'applicant';
  }

  /** The device does not read as fast as it is written to. */
  get isClogged(): boolean {
    return this.#deps.socket.bufferedAmount > this.#deps.limits.bufferedBytes;
  }

  seated(seat: NewSeat): void {
    if (this.#session.state !== 'applicant') return;
    this.seat = seat;
    this.#apply(this.#session.seated(seat, this.#deps.monotonicMs()));
  }

  refused(farewell: Farewell): void {
    if (this.#session.state === 'applicant') this.#apply(this.#session.refused(farewell));
  }

  /** Closes it from our side, whatever its state. */
  dismiss(farewell: Farewell): void {
    this.#apply({ next: new Gone(), actions: [{ kind: 'close', farewell }] });
  }

  /**
   * Asks the device to move to another process: it gets no further letters here, and what it acknowledges until
   * it goes still counts. False where its language has no word for that, and when it is being closed.
   */
  sendAway(): boolean {
    const frame = this.#leavesByMs === undefined ? this.#deps.protocol.goAway() : undefined;
    if (!frame) return false;
    this.#session = new Gone();
    this.#send(frame);
    return true;
  }

  terminate(): void {
    this.#deps.socket.terminate();
  }

  /** A new letter, told by a notice. What cannot be sent now is read from the database later. */
  offer(letter: Letter): void {
    const member = this.member;
    if (!member) return;
    if (this.isPulling || member.isBehind || this.isClogged) member.isBehind = true;
    else this.#deliver([letter], false);
  }

  /** Letters read from the database, oldest first. Those that waited before its login are sent apart. */
  deliverWaiting(letters: WaitingLetter[]): void {
    const newest = this.seat?.newestInboxId ?? 0;
    this.#deliver(
      letters.filter(({ inboxId }) => inboxId <= newest),
      true,
    );
    this.#deliver(
      letters.filter(({ inboxId }) => inboxId > newest),
      false,
    );
  }

  settled(pushId: number): void {
    this.member?.settled(pushId);
    this.#askForLetters();
  }

  /** Looks at deadlines; called every `tickEveryMs`. */
  tick(nowMs: number): void {
    this.#frames = 0;
    const { readWithinMs } = this.#deps.limits;
    if (this.#leavesByMs !== undefined && nowMs >= this.#leavesByMs) this.terminate();
    else if (this.#unsent > 0 && nowMs - this.#tookAtMs >= readWithinMs) this.dismiss('readTimeout');
    else this.#apply(this.#session.tick(nowMs));
  }

  /** Sends what the session takes of `letters`, in one frame. */
  #deliver(letters: Letter[], isOffline: boolean): void {
    const taken = this.member?.take(letters) ?? [];
    if (taken.length > 0) this.#send(this.#deps.protocol.letters(taken, isOffline));
  }

  #hear(data: Buffer, isBinary: boolean): void {
    if (this.#count()) this.#apply(this.#session.hear(this.#deps.protocol.parse(data, isBinary)));
  }

  /** False when it is one frame too many. */
  #count(): boolean {
    this.#heard();
    this.#frames += 1;
    const isFine = this.#frames <= this.#deps.limits.framesPerTick;
    if (!isFine) this.dismiss('tooManyFrames');
    return isFine;
  }

  #heard(): void {
    this.member?.heard(this.#deps.monotonicMs());
  }

  #apply(step: Step): void {
    this.#session = step.next;
    const { protocol, owner, socket } = this.#deps;
    for (const action of step.actions)
      switch (action.kind) {
        case 'seat':
          owner.seat(this, action);
          break;
        case 'welcome':
          this.#answer(protocol.loggedIn(action.serial));
          break;
        case 'beat':
          this.#answer(protocol.heartbeat(action.serial));
          break;
        case 'refuse':
          this.#answer(protocol.refusal(action.request));
          break;
        case 'ping':
          if (socket.readyState === socket.OPEN) socket.ping();
          break;
        case 'ack':
          if (this.seat) owner.ack(this.seat, action.pushIds);
          break;
        case 'close':
          this.#close(action.farewell);
          break;
      }
  }

  #close(farewell: Farewell): void {
    if (this.#leavesByMs !== undefined) return;
    this.#leavesByMs = this.#deps.monotonicMs() + this.#deps.limits.closeWithinMs;
    this.#send(this.#deps.protocol.farewell(farewell));
    this.#deps.socket.close(farewells[farewell].code, farewells[farewell].reason);
  }

  /** Who asks and does not read is not answered: many small answers cost more memory than their bytes. */
  #answer(frame: Frame | undefined): void {
    if (this.#unsent < this.#deps.limits.unsentAnswers) this.#send(frame);
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
    const { member } = this;
    if (member?.isBehind && member.hasRoom && !this.isPulling && !this.isClogged)
      this.#deps.owner.wantsLetters(this);
  }
}
