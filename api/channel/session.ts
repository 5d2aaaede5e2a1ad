import type { Letter } from '../../shared/db/tables/channel/channel-letters.ts';
import type { SessionSeat } from '../../shared/db/tables/channel/channel-presence.ts';
import type { Farewell } from './farewell.ts';
import type { ChannelLimits } from './limits.ts';
import type { ForeignRequest, Incoming } from './protocols/protocol.ts';

/**
 * The life of one connection, without input or output: what was heard and what time it is go in; the
 * next state and what is to be done come out. A state that cannot do something has no method for it:
 * only a `Member` can be given letters. Drawing: README.md. Times are monotonic milliseconds.
 */
export type Session = Stranger | Applicant | Member | Gone;

/** What the socket and the database are to do next. */
export type Action =
  | { kind: 'seat'; appId: string; installationId: string }
  | { kind: 'welcome'; serial: number | undefined }
  | { kind: 'beat'; serial: number | undefined }
  | { kind: 'refuse'; request: ForeignRequest }
  | { kind: 'ping' }
  | { kind: 'ack'; pushIds: number[] }
  | { kind: 'close'; farewell: Farewell };

export interface Step {
  next: Session;
  actions: Action[];
}

const stay = (next: Session, ...actions: Action[]): Step => ({ next, actions });

const leave = (farewell: Farewell): Step => ({ next: new Gone(), actions: [{ kind: 'close', farewell }] });

type Login = Omit<Extract<Incoming, { kind: 'login' }>, 'kind'>;

/** Connected, and nobody knows who it is. */
export class Stranger {
  readonly state = 'stranger';
  readonly #limits: ChannelLimits;
  readonly #loginByMs: number;

  constructor(limits: ChannelLimits, nowMs: number) {
    this.#limits = limits;
    this.#loginByMs = nowMs + limits.loginWithinMs;
  }

  hear(said: Incoming): Step {
    switch (said.kind) {
      case 'login': {
        const { appId, installationId } = said;
        const next = new Applicant(said, this.#limits, this.#loginByMs);
        return stay(next, { kind: 'seat', appId, installationId });
      }
      case 'badLogin':
        return leave('invalidLogin');
      case 'unparseable':
        return leave('unparseable');
      case 'heartbeat':
        return stay(this, { kind: 'beat', serial: said.serial });
      case 'foreign':
        return stay(this, { kind: 'refuse', request: said.request });
      default:
        return stay(this);
    }
  }

  tick(nowMs: number): Step {
    return nowMs >= this.#loginByMs ? leave('loginTimeout') : stay(this);
  }
}

/** Has said who it is; the database is being asked. */
export class Applicant {
  readonly state = 'applicant';
  readonly appId: string;
  readonly installationId: string;
  readonly #limits: ChannelLimits;
  readonly #seatedByMs: number;
  readonly #serial: number | undefined;
  /** The last heartbeat, until it is answered. */
  #owedBeat: { serial?: number } | undefined;
  #earlyAcks: number[] = [];

  constructor(login: Login, limits: ChannelLimits, loginByMs: number) {
    this.#serial = login.serial;
    this.appId = login.appId;
    this.installationId = login.installationId;
    this.#limits = limits;
    this.#seatedByMs = loginByMs + limits.seatWithinMs;
  }

  /** Clients send a heartbeat right behind the login: its answer then says that the login succeeded. */
  hear(said: Incoming): Step {
    switch (said.kind) {
      case 'unparseable':
        return leave('unparseable');
      case 'heartbeat':
        this.#owedBeat = said;
        return stay(this);
      case 'foreign':
        return stay(this, { kind: 'refuse', request: said.request });
      case 'ack':
        this.#earlyAcks = [...this.#earlyAcks, ...said.pushIds].slice(0, this.#limits.unackedLetters);
        return stay(this);
      default:
        return stay(this);
    }
  }

  seated(seat: SessionSeat, nowMs: number): Step {
    const actions: Action[] = [{ kind: 'welcome', serial: this.#serial }];
    if (this.#owedBeat) actions.push({ kind: 'beat', serial: this.#owedBeat.serial });
    if (this.#earlyAcks.length > 0) actions.push({ kind: 'ack', pushIds: this.#earlyAcks });
    return stay(new Member(seat, this, this.#limits, nowMs), ...actions);
  }

  refused(farewell: Farewell): Step {
    return leave(farewell);
  }

  /** That the answer is late is our fault, not the device's. */
  tick(nowMs: number): Step {
    return nowMs >= this.#seatedByMs ? leave('tryAgainLater') : stay(this);
  }
}

/** Logged in: gets letters and acknowledges them. */
export class Member {
  readonly state = 'member';
  readonly seat: SessionSeat;
  /** There are letters stored that it has not been given. */
  isBehind = false;
  readonly #installationId: string;
  readonly #limits: ChannelLimits;
  readonly #onTheWay = new Set<number>();
  #heardAtMs: number;
  #isPinged = false;

  constructor(seat: SessionSeat, from: { installationId: string }, limits: ChannelLimits, nowMs: number) {
    this.seat = seat;
    this.#installationId = from.installationId;
    this.#limits = limits;
    this.#heardAtMs = nowMs;
  }

  hear(said: Incoming): Step {
    switch (said.kind) {
      case 'heartbeat':
        return stay(this, { kind: 'beat', serial: said.serial });
      case 'foreign':
        return stay(this, { kind: 'refuse', request: said.request });
      case 'ack':
        return said.pushIds.length === 0 ? stay(this) : stay(this, { kind: 'ack', pushIds: said.pushIds });
      case 'login':
        return this.#isSelf(said)
          ? stay(this, { kind: 'welcome', serial: said.serial })
          : leave('invalidLogin');
      case 'badLogin':
        return leave('invalidLogin');
      case 'unparseable':
        return leave('unparseable');
      default:
        return stay(this);
    }
  }

  /** Any sign of life, a pong too. */
  heard(nowMs: number): void {
    this.#heardAtMs = nowMs;
    this.#isPinged = false;
  }

  tick(nowMs: number): Step {
    const silentMs = nowMs - this.#heardAtMs;
    const { pingAfterMs, pongWithinMs } = this.#limits;
    if (silentMs >= pingAfterMs + pongWithinMs && this.#isPinged) return leave('readTimeout');
    if (silentMs < pingAfterMs || this.#isPinged) return stay(this);
    this.#isPinged = true;
    return stay(this, { kind: 'ping' });
  }

  /** Pushes that were sent on this connection and are not acknowledged yet. */
  get onTheWay(): number[] {
    return [...this.#onTheWay];
  }

  get unacked(): number {
    return this.#onTheWay.size;
  }

  get hasRoom(): boolean {
    return this.unacked < this.#limits.unackedLetters;
  }

  /** Those of `letters` that are to be sent now; they count as on their way from here on. */
  take(letters: Letter[]): Letter[] {
    const taken: Letter[] = [];
    for (const letter of letters) {
      if (this.#onTheWay.has(letter.pushId)) continue;
      if (!this.hasRoom) {
        this.isBehind = true;
        break;
      }
      this.#onTheWay.add(letter.pushId);
      taken.push(letter);
    }
    return taken;
  }

  /** The acknowledgement of a letter is stored: there is room for another. */
  settled(pushId: number): void {
    this.#onTheWay.delete(pushId);
  }

  #isSelf(login: { appId: string; installationId: string }): boolean {
    return login.appId === this.seat.appId && login.installationId === this.#installationId;
  }
}

/** Told to go, or gone. What it acknowledges before its socket closes still counts. */
export class Gone {
  readonly state = 'gone';

  hear(said: Incoming): Step {
    return said.kind === 'ack' ? stay(this, { kind: 'ack', pushIds: said.pushIds }) : stay(this);
  }

  tick(): Step {
    return stay(this);
  }
}
